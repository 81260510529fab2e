//! What lists return and how many rows and index entries they read for it, with more tasks than [`super::FEW`] and
//! [`super::FIRST`].

use std::sync::Arc;

use auth::{Caller, Claims};
use diesel::PgConnection;
use diesel::connection::SimpleConnection as _;
use http_kit::Query;
use listing::PageLimits;
use serde_json::json;
use testkit::{TestConnection, TestDatabase, lines};

use crate::tasks::access::Actor;
use crate::tasks::list_query::TaskConditions;
use crate::tasks::requests::parse_list;

/// Enough tasks for every way in which lists are read.
const MANY: i64 = 50_000;
const MILLION: i64 = 1_000_000;
/// The most that is read before all states are: three conditions of which each may find few tasks, and the first tasks
/// with their states.
const FEW_AND_FIRST: i64 = 3 * 10_001 + 2 * 10_000;
/// What a page reads of each of its rows: an entry and a row of both tables.
const PAGE: i64 = 200;

/// Dot created two of five tasks, and is to decide two others. Of the first, the ten oldest are pending; of the others,
/// half are. In the order of titles hers come last. Of the rest, Kim created one in five hundred.
const FILL: &str = "
SET search_path = people_task, public;
SET max_parallel_workers_per_gather = 0;
WITH made AS (
    INSERT INTO tasks (id, creator, requester, approver, requester_key, approver_key, title, description, public,
        approver_secret, requester_secret, created, decision_by)
    SELECT decode(lpad(to_hex(n), 24, '0'), 'hex'),
        CASE WHEN n % 5 < 2 THEN decode(repeat('d0', 12), 'hex') WHEN n % 2500 = 4 THEN decode(repeat('c1', 12), 'hex')
            ELSE decode(repeat('ee', 12), 'hex') END,
        'r@example.com', approver, 'r@example.com', approver,
        CASE WHEN n % 5 < 4 THEN 'Zoom ' ELSE 'Plan ' END || n, 'd', n % 5 = 4,
        sha256(n::text::bytea), sha256(('r' || n)::bytea), now() - ({tasks} - n) * interval '1 second',
        CASE WHEN n % 5 = 4 THEN now() + n * interval '1 minute' END
    FROM generate_series(1, {tasks}) AS n,
        LATERAL (SELECT CASE WHEN n % 5 BETWEEN 2 AND 3 THEN 'dot@example.com' ELSE 'a@example.com' END AS approver) AS a
    RETURNING *
)
INSERT INTO task_states (task_id, status, mtime, decision_made, public, creator, created, decision_by, approver_key,
    requester_key, title_key)
SELECT id, status, created + interval '1 hour', CASE WHEN status <> 'pending' THEN now() END, public, creator, created,
    decision_by, approver_key, requester_key, lower(title)
FROM made, LATERAL (SELECT get_byte(id, 11) + 256 * get_byte(id, 10) + 65536 * get_byte(id, 9) AS n) AS number,
    LATERAL (SELECT CASE WHEN n % 5 < 2 AND n > 25 THEN 'approved' WHEN n % 2 = 0 THEN 'rejected' ELSE 'pending' END
        AS status) AS state;";

/// Before and after very many tasks are inserted: indexes are built at the end, which takes less time.
const BEFORE_MANY: &str = "
CREATE TEMP TABLE dropped AS
SELECT indexrelid::regclass::text AS name, pg_get_indexdef(indexrelid) AS definition FROM pg_index
WHERE indrelid IN ('people_task.tasks'::regclass, 'people_task.task_states'::regclass)
    AND NOT EXISTS (SELECT FROM pg_constraint WHERE conindid = indexrelid);
DO $$ DECLARE one record; BEGIN
    FOR one IN SELECT name FROM dropped LOOP EXECUTE 'DROP INDEX ' || one.name; END LOOP;
END $$;";
const AFTER_MANY: &str = "
DO $$ DECLARE one record; BEGIN
    FOR one IN SELECT definition FROM dropped LOOP EXECUTE one.definition; END LOOP;
END $$;";

fn actor(id: &str, email: &str, scope: &[&str]) -> Actor {
    let claims = json!({
        "sub": id, "id": id, "username": email, "email": email, "emailVerified": true, "scope": scope, "epoch": 0,
        "iat": 0, "exp": 0, "iss": "x", "aud": "x", "jti": "x", "incarnation": "x",
    });
    let claims: Claims = serde_json::from_value(claims).unwrap();
    Actor::new(Some(Caller::from(Arc::new(claims))), Vec::new())
}

/// How many rows and index entries this connection has read of the two tables in its transaction.
fn rows_read(connection: &mut PgConnection) -> i64 {
    testkit::rows_read(connection, "tasks,task_states").cast_signed()
}

struct Lists {
    tasks: i64,
    connection: TestConnection,
    _database: TestDatabase,
}

impl Lists {
    fn of(tasks: i64) -> Self {
        let database = TestDatabase::people_task(crate::MIGRATIONS);
        let mut connection = database.admin();
        let fill = FILL.replace("{tasks}", &tasks.to_string());
        let filling = if tasks < MILLION {
            vec![&*fill]
        } else {
            vec![BEFORE_MANY, &fill, AFTER_MANY]
        };
        let statistics = ["VACUUM ANALYZE tasks, task_states", "BEGIN"];
        for statement in filling.into_iter().chain(statistics) {
            connection.batch_execute(statement).unwrap();
        }
        Self {
            tasks,
            connection,
            _database: database,
        }
    }

    /// Reads a page, checks its identifiers, and returns how many rows were read.
    fn page(&mut self, actor: &Actor, query: &str, expected: &str) -> i64 {
        let (list, role) = parse_list(&Query::parse(query)).unwrap();
        let before = rows_read(&mut self.connection);
        let limits = PageLimits {
            paging: list.paging,
            bytes: usize::MAX,
        };
        let page = super::load_page(&mut self.connection, actor, role, &list, limits).unwrap();
        let read = rows_read(&mut self.connection) - before;
        let ids: Vec<_> = page.rows.iter().map(|task| task.id.to_string()).collect();
        let paging = list.paging;
        let sql = format!(
            "SELECT encode(task_id, 'hex') AS line FROM task_states WHERE {expected} LIMIT {} OFFSET {}",
            paging.limit, paging.offset
        );
        assert_eq!(ids, lines(&mut self.connection, &sql), "{query}");
        read
    }

    /// Counts, checks the number, and returns it with how many rows were read.
    fn count(&mut self, actor: &Actor, query: &str, expected: &str) -> (i64, i64) {
        let parameters = Query::parse(query);
        let role = parameters.parsed("role").unwrap();
        let conditions = TaskConditions::parse(&parameters).unwrap();
        let before = rows_read(&mut self.connection);
        let count = super::count(&mut self.connection, actor, role, &conditions).unwrap();
        let read = rows_read(&mut self.connection) - before;
        let sql = format!("SELECT count(*)::text AS line FROM task_states WHERE {expected}");
        let expected = lines(&mut self.connection, &sql);
        assert_eq!(count.to_string(), expected[0], "{query}");
        (count, read)
    }
}

fn dot() -> Actor {
    actor(&"d0".repeat(12), "dot@example.com", &["user"])
}

fn kim() -> Actor {
    actor(&"c1".repeat(12), "kim@example.com", &["user"])
}

fn admin() -> Actor {
    actor(&"ad".repeat(12), "ad@example.com", &["user", "admin"])
}

const DOTS: &str =
    "(creator = decode(repeat('d0', 12), 'hex') OR approver_key = 'dot@example.com')";
const CREATED: &str = "creator = decode(repeat('d0', 12), 'hex')";
const TO_DECIDE: &str = "approver_key = 'dot@example.com'";
const KIMS: &str = "creator = decode(repeat('c1', 12), 'hex')";
const NEWEST: &str = "ORDER BY created DESC, task_id DESC";

/// Checks all that people open all the time.
fn check_usual_pages_and_counts(lists: &mut Lists) {
    let dot = dot();
    for (role, own) in [
        ("", DOTS),
        ("role=creator", CREATED),
        ("role=approver", TO_DECIDE),
    ] {
        let pages = [
            ("", format!("{own} {NEWEST}")),
            ("sort=created:1", format!("{own} ORDER BY created, task_id")),
            (
                "filter=status:pending",
                format!("{own} AND status = 'pending' {NEWEST}"),
            ),
        ];
        for (query, expected) in pages {
            let query = format!("limit=20&{query}&{role}");
            let read = lists.page(&dot, &query, &expected);
            assert!(read < PAGE, "{query} read {read}");
        }
        let pending = format!("{own} AND status = 'pending'");
        for (query, expected) in [("", own), ("filter=status:pending", &pending)] {
            let query = format!("{query}&{role}");
            let (count, read) = lists.count(&dot, &query, expected);
            // An administrator's tasks may be all, which the planner may read in any order.
            assert!(
                read <= count * 2 || read == lists.tasks,
                "{query} read {read} for {count}"
            );
        }
    }
}

#[test]
fn usual_pages_and_counts_read_only_what_they_return() {
    check_usual_pages_and_counts(&mut Lists::of(MANY));
}

#[test]
fn counts_of_a_role_read_only_the_index_of_its_pages() {
    let mut lists = Lists::of(MANY);
    for (role, own) in [("creator", CREATED), ("approver", TO_DECIDE)] {
        let (count, _) = lists.count(&dot(), &format!("role={role}"), own);
        let read = format!(
            "SELECT pg_stat_get_xact_tuples_returned('tasks_by_{role}'::regclass)::text AS line"
        );
        let read = lines(&mut lists.connection, &read);
        assert_eq!(read[0], count.to_string(), "{role}");
    }
}

/// Every sort, and its order.
const SORTS: [(&str, &str); 7] = [
    ("created:1", "created, task_id"),
    ("title:1", "title_key, task_id"),
    ("title:-1", "title_key DESC, task_id DESC"),
    ("decisionBy:1", "decision_by NULLS LAST, task_id"),
    ("decisionBy:-1", "decision_by DESC NULLS LAST, task_id DESC"),
    ("mtime:-1", "mtime DESC, task_id DESC"),
    ("status:1", "status, task_id"),
];

#[test]
fn lists_of_few_tasks_read_only_these() {
    let mut lists = Lists::of(MANY);
    let titled = format!("{DOTS} AND title_key = 'zoom 7' AND status = 'pending'");
    let rejected = format!("{KIMS} AND status = 'rejected' AND public");
    let found = format!("{KIMS} AND title_key LIKE '%plan 2%'");
    // Where a filter matches few tasks, those of the user's roles are counted, too.
    let probe = 2 * 10_001;
    for (actor, query, expected, most) in [
        (kim(), "", KIMS, PAGE),
        (kim(), "filter=status:rejected,public:true", &rejected, PAGE),
        (kim(), "pattern=PLAN 2", &found, PAGE),
        (
            admin(),
            "role=any&filter=title:zoom 7",
            "title_key = 'zoom 7'",
            PAGE,
        ),
        (
            dot(),
            "filter=title:ZOOM 7,status:pending",
            &titled,
            probe + PAGE,
        ),
        (
            dot(),
            "filter=approver:x@example.com",
            "false",
            probe + PAGE,
        ),
    ] {
        for (sort, order) in SORTS {
            let page = format!("limit=5&sort={sort}&{query}");
            let read = lists.page(&actor, &page, &format!("{expected} ORDER BY {order}"));
            assert!(read < most, "{page} read {read}");
        }
        let (_, read) = lists.count(&actor, query, expected);
        assert!(read < most, "{query} read {read}");
    }
}

#[test]
fn other_lists_of_many_tasks_read_every_state_once_at_most() {
    let mut lists = Lists::of(MANY);
    let any = "true".to_owned();
    for (actor, role, own) in [
        (dot(), "", DOTS.to_owned()),
        (dot(), "role=creator", CREATED.to_owned()),
        (admin(), "role=any", any),
    ] {
        for (filter, condition) in [
            ("", "true"),
            ("&filter=status:approved", "status = 'approved'"),
            ("&filter=status:pending", "status = 'pending'"),
            ("&filter=public:true", "public"),
            ("&pattern=om%201", "title_key LIKE '%om 1%'"),
            ("&pattern=q", "title_key LIKE '%q%'"),
        ] {
            for (sort, order) in SORTS {
                for offset in [0, 9_999] {
                    let query = format!("limit=7&offset={offset}&sort={sort}{filter}&{role}");
                    let expected = format!("{own} AND {condition} ORDER BY {order}");
                    let read = lists.page(&actor, &query, &expected);
                    let most = lists.tasks + FEW_AND_FIRST + PAGE;
                    assert!(read <= most, "{query} read {read}");
                }
            }
            let query = format!("{role}{filter}");
            let (_, read) = lists.count(&actor, &query, &format!("{own} AND {condition}"));
            assert!(read <= lists.tasks + FEW_AND_FIRST, "{query} read {read}");
        }
    }
}

#[test]
fn a_million_tasks_are_read_like_fewer() {
    let mut lists = Lists::of(MILLION);
    check_usual_pages_and_counts(&mut lists);
    let most = lists.tasks + FEW_AND_FIRST + PAGE;
    for (actor, query, condition) in [
        (dot(), "", DOTS.to_owned()),
        (
            dot(),
            "filter=status:approved",
            format!("{DOTS} AND status = 'approved'"),
        ),
        (
            dot(),
            "role=creator&filter=public:true",
            format!("{CREATED} AND public"),
        ),
        (
            dot(),
            "pattern=om%2012",
            format!("{DOTS} AND title_key LIKE '%om 12%'"),
        ),
        (
            admin(),
            "role=any&pattern=q",
            "title_key LIKE '%q%'".to_owned(),
        ),
        (
            admin(),
            "role=any&filter=status:pending",
            "status = 'pending'".to_owned(),
        ),
    ] {
        for (sort, order) in SORTS {
            let page = format!("limit=7&offset=9999&sort={sort}&{query}");
            let read = lists.page(&actor, &page, &format!("{condition} ORDER BY {order}"));
            assert!(read <= most, "{page} read {read}");
        }
        let (_, read) = lists.count(&actor, query, &condition);
        assert!(read <= most, "{query} read {read}");
    }
}
