//! What lists read, in rows of tables and entries of indexes.

use database::Connection;
use diesel::connection::SimpleConnection as _;
use diesel::prelude::*;
use diesel::sql_types::BigInt;
use http_kit::Query;
use listing::{PageLimits, Sort};
use testkit::{TestConnection, TestDatabase};

use crate::accounts::list_query::{UserConditions, UserListQuery, UserSort};
use crate::accounts::store::{count, list};

const USERS: i64 = 20_000;
const MILLION: i64 = 1_000_000;

/// Users of whom one in 200 is an administrator, one in 100 inactive, 4,000 of the vendor globex, and of the others one in
/// four of acme. Those of globex were created first, and their usernames and addresses come first.
const INSERT: &str = "
INSERT INTO users (id, username, username_key, email, email_key, password_hash, is_active, plan, scope, vendor, created,
    mtime)
SELECT decode(lpad(to_hex(n), 24, '0'), 'hex'), name, name, name, name, 'x', n % 100 <> 1,
    CASE WHEN n % 5 = 0 THEN 'pro' ELSE 'free' END,
    CASE WHEN n % 200 = 0 THEN '{user,admin}' ELSE '{user}' END::text[],
    CASE WHEN n <= 4000 THEN to_jsonb('globex'::text) WHEN n % 4 = 0 THEN '[\"acme\", \"initech\"]' END,
    at, at
FROM (
    SELECT n, CASE WHEN n <= 4000 THEN 'a' ELSE 'b' END || md5(n::text) || '@example.com' AS name,
        timestamptz '2026-01-01' + n * interval '1 minute' AS at
    FROM generate_series(1, {users}) AS n
) AS made;";

const SETTINGS: &str = "
SET search_path = users, public;
SET max_parallel_workers_per_gather = 0;";

const STATISTICS: &str = "
UPDATE last_sign_ins SET at = now() - get_byte(user_id, 11) * interval '1 day' WHERE get_byte(user_id, 11) > 80;
VACUUM ANALYZE users, user_segments, last_sign_ins;";

/// Before and after very many users are inserted: rows that triggers would write one by one are written together, and
/// indexes are built at the end. It takes half of the time.
const BEFORE_MANY: &str = "
SET session_replication_role = replica;
CREATE TEMP TABLE dropped AS
SELECT indexrelid::regclass::text AS name, pg_get_indexdef(indexrelid) AS definition FROM pg_index
WHERE indrelid = 'users'::regclass AND NOT EXISTS (SELECT FROM pg_constraint WHERE conindid = indexrelid);
DO $$ DECLARE one record; BEGIN
    FOR one IN SELECT name FROM dropped LOOP EXECUTE 'DROP INDEX ' || one.name; END LOOP;
END $$;";
const AFTER_MANY: &str = "
DO $$ DECLARE one record; BEGIN
    FOR one IN SELECT definition FROM dropped LOOP EXECUTE one.definition; END LOOP;
END $$;
INSERT INTO sign_in_names (name, user_id) SELECT email_key, id FROM users;
INSERT INTO last_sign_ins (user_id, segment) SELECT id, segment FROM users;
INSERT INTO user_segments (id, is_active, plan, scope, vendor, users)
SELECT segment, is_active, plan, scope, vendor, count(*) FROM users GROUP BY 1, 2, 3, 4, 5;
SET session_replication_role = origin;";

const SORTS: [&str; 7] = [
    "created",
    "mtime",
    "username",
    "email",
    "plan",
    "isActive",
    "lastSignIn",
];

fn prepared() -> (TestDatabase, TestConnection) {
    prepared_with(USERS)
}

fn prepared_with(users: i64) -> (TestDatabase, TestConnection) {
    let database = TestDatabase::users(crate::MIGRATIONS);
    let mut connection = database.admin();
    let insert = INSERT.replace("{users}", &users.to_string());
    let statements = if users > USERS {
        vec![SETTINGS, BEFORE_MANY, &insert, AFTER_MANY]
    } else {
        vec![SETTINGS, &insert]
    };
    for statement in statements
        .into_iter()
        .chain(STATISTICS.split_inclusive(';'))
    {
        connection.batch_execute(statement).unwrap();
    }
    (database, connection)
}

#[derive(QueryableByName)]
struct Read {
    #[diesel(sql_type = BigInt)]
    rows: i64,
}

/// The rows of the tables of users and of their indexes that a closure reads.
fn rows_read(connection: &mut Connection, work: impl FnOnce(&mut Connection)) -> i64 {
    const COUNT: &str = "
        WITH tables AS (SELECT unnest('{users.users, users.last_sign_ins}'::regclass[])::oid AS id)
        SELECT ((SELECT sum(seq_tup_read) FROM pg_stat_user_tables JOIN tables ON relid = id)
            + (SELECT sum(idx_tup_read) FROM pg_stat_user_indexes JOIN tables ON relid = id))::bigint AS rows";
    let count = |connection: &mut Connection| {
        // A connection reports what it has read after a statement, but only once in a while without this.
        connection
            .batch_execute("SELECT pg_stat_force_next_flush()")
            .unwrap();
        let read: Read = diesel::sql_query(COUNT).get_result(connection).unwrap();
        read.rows
    };
    let before = count(connection);
    work(connection);
    count(connection) - before
}

/// The rows that a list reads, and the number of users on its page.
fn read(connection: &mut Connection, query: &str) -> (i64, usize) {
    let query = UserListQuery::parse(&Query::parse(query), Sort::descending(UserSort::Created));
    let query = query.unwrap();
    let mut users = 0;
    let limits = PageLimits {
        paging: query.paging,
        bytes: usize::MAX,
    };
    let rows = rows_read(connection, |connection| {
        users = list(connection, &query, limits).unwrap().rows.len();
    });
    (rows, users)
}

fn assert_reads_at_most(connection: &mut Connection, query: &str, max: i64) {
    for sort in SORTS {
        for direction in ["1", "-1"] {
            let query = format!("{query}&limit=20&sort={sort}:{direction}");
            let (rows, users) = read(connection, &query);
            assert!(rows <= max, "{query}: {users} users, {rows} rows");
        }
    }
}

/// The rows of a page and the one after it, each by three indexes, and the ends of indexes, which the planner reads.
const PAGE: i64 = 3 * 21 + 10;

#[test]
fn a_page_reads_its_rows_and_those_that_the_filters_leave_out_before_it() {
    let (_database, mut connection) = prepared();
    for (query, left_out) in [
        ("", 0),
        ("filter=isActive:true", 200),
        ("filter=scope:user", 0),
        ("filter=plan:free,scope:user,isActive:true", 4_200),
        ("filter=vendor:acme", 4_000 * 4),
        ("offset=15000", 15_000),
        ("filter=scope:user&offset=15000", 15_000),
    ] {
        assert_reads_at_most(&mut connection, query, PAGE + left_out);
    }
}

#[test]
fn few_users_are_read_by_their_segments() {
    let (_database, mut connection) = prepared();
    for (query, found) in [
        ("filter=scope:admin", 100),
        ("filter=isActive:false", 200),
        ("filter=isActive:false,vendor:globex", 40),
        ("filter=plan:unknown", 0),
        ("filter=vendor:acme,vendor:globex", 0),
        ("filter=username:unknown@example.com", 0),
        ("filter=email:unknown@example.com,scope:user", 0),
    ] {
        // By the index of the segments, and perhaps the time of the last sign-in.
        assert_reads_at_most(&mut connection, query, 2 * found + PAGE);
    }
}

#[test]
fn users_that_come_last_are_found_by_the_index_of_the_sort_alone() {
    let (_database, mut connection) = prepared();
    for sort in ["created:-1", "username:-1", "email:-1"] {
        let (rows, users) = read(
            &mut connection,
            &format!("filter=vendor:globex&sort={sort}&limit=20"),
        );
        assert_eq!(users, 20);
        assert!(rows <= USERS + PAGE, "{sort}: {rows}");
    }
}

#[test]
fn a_sort_by_what_a_filter_fixes_begins_with_the_users_that_match() {
    let (_database, mut connection) = prepared();
    for query in [
        "filter=plan:free&sort=plan:1",
        "filter=plan:free&sort=plan:-1",
        "filter=plan:pro&sort=plan:1",
        "filter=plan:pro&sort=plan:-1",
        "filter=isActive:true&sort=isActive:1",
        "filter=isActive:true&sort=isActive:-1",
    ] {
        let (rows, users) = read(&mut connection, &format!("{query}&limit=20"));
        assert_eq!(users, 20);
        assert!(rows <= PAGE, "{query}: {rows}");
    }
}

#[test]
fn a_pattern_is_searched_in_the_first_users_and_then_in_all() {
    let (_database, mut connection) = prepared();
    let window = USERS + 2_000;
    assert_reads_at_most(&mut connection, "pattern=example", window + PAGE);
    for pattern in ["a", "zz", "zzz", "b1", "%25"] {
        let query = format!("pattern={pattern}");
        assert_reads_at_most(&mut connection, &query, window + USERS + PAGE);
    }
}

#[test]
fn counts_read_no_users_unless_there_is_a_pattern() {
    let (_database, mut connection) = prepared();
    let counts = [
        ("", USERS),
        ("filter=isActive:true", 19_800),
        ("filter=scope:admin", 100),
        ("filter=vendor:acme", 4_000),
        ("filter=vendor:acme,plan:pro", 800),
        ("filter=plan:unknown", 0),
    ];
    assert_counts_read_no_users(&mut connection, &counts);
}

fn assert_counts_read_no_users(connection: &mut Connection, counts: &[(&str, i64)]) {
    for (query, expected) in counts {
        let conditions = UserConditions::parse(&Query::parse(query)).unwrap();
        let read = rows_read(connection, |connection| {
            let counted = count(connection, &conditions).unwrap();
            assert_eq!(counted, *expected, "{query}");
        });
        assert_eq!(read, 0, "{query}");
    }
}

#[test]
fn a_million_users_are_read_like_fewer() {
    let (_database, mut connection) = prepared_with(MILLION);
    for (query, left_out) in [
        ("", 0),
        ("filter=isActive:true", 10_000),
        ("filter=scope:user", 0),
        ("offset=15000", 15_000),
        ("filter=scope:user&offset=15000", 15_000),
        ("filter=vendor:acme,isActive:true", 10_000 + 4_000 * 4),
        ("filter=isActive:false,vendor:globex", 2 * 40),
        ("filter=plan:unknown", 0),
        ("filter=email:unknown@example.com,scope:user", 0),
    ] {
        assert_reads_at_most(&mut connection, query, PAGE + left_out);
    }
    let counts = [
        ("", MILLION),
        ("filter=isActive:true", 990_000),
        ("filter=scope:admin", 5_000),
        ("filter=vendor:globex", 4_000),
        ("filter=plan:unknown", 0),
    ];
    assert_counts_read_no_users(&mut connection, &counts);
}

#[test]
fn segments_count_users_that_are_inserted_changed_and_deleted() {
    let (_database, mut connection) = prepared();
    connection
        .batch_execute(
            "UPDATE users SET plan = 'gold', vendor = NULL WHERE n_of(id) <= 4000;"
                .replace(
                    "n_of(id)",
                    "('x' || right(encode(id, 'hex'), 8))::bit(32)::int",
                )
                .as_str(),
        )
        .unwrap();
    connection
        .batch_execute("DELETE FROM users WHERE 'admin' = ANY (scope)")
        .unwrap();
    let wrong: Read = diesel::sql_query(
        "SELECT count(*) AS rows FROM (
            SELECT segment, is_active, plan, scope, vendor, count(*) AS users FROM users GROUP BY 1, 2, 3, 4, 5
        ) AS counted FULL JOIN user_segments AS stored ON id = segment
            AND stored.is_active = counted.is_active AND stored.plan = counted.plan AND stored.scope = counted.scope
            AND stored.vendor IS NOT DISTINCT FROM counted.vendor AND stored.users = counted.users
        WHERE id IS NULL OR segment IS NULL",
    )
    .get_result(&mut connection)
    .unwrap();
    assert_eq!(wrong.rows, 0);
}
