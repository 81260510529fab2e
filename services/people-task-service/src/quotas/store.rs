//! Counts what users have. Raw SQL, because a statement counts several things, each up to a limit.

use database::{Error, column, prepared};
use diesel::sql_types::{Array, BigInt, Binary, Text};
use diesel::{PgConnection, RunQueryDsl as _};
use values::UserId;

use super::limits::Amounts;
use crate::schema::SCHEMA;

/// The columns of [`COUNT`] and [`COUNT_ALL`].
type Counted = (BigInt, BigInt, BigInt);

fn amounts((tasks, webhooks, bytes): (i64, i64, i64)) -> Amounts {
    let number = |number| u64::try_from(number).unwrap_or_default();
    Amounts {
        tasks: number(tasks),
        webhooks: number(webhooks),
        bytes: number(bytes),
        mails: 0,
    }
}

pub(super) fn count(
    connection: &mut PgConnection,
    user: UserId,
    limits: Amounts,
) -> Result<Amounts, Error> {
    let count = prepared(COUNT)
        .bind::<Binary, _>(user)
        .bind::<BigInt, _>(signed(limits.tasks))
        .bind::<BigInt, _>(signed(limits.webhooks))
        .returning::<Counted>();
    Ok(amounts(count.get_result(connection)?))
}

// Webhooks for tasks of others count for no one: none says whether its task is pending, so all of them would be read, also
// those of decided tasks. Each task has few, and there is a rate. A condition that `IS TRUE` is matched by no index. Else
// Postgres may read, for each task, all webhooks of the user.
const COUNT: &str = "
SELECT
    (SELECT count(*) FROM (
        SELECT FROM task_states WHERE creator = $1 AND status = 'pending' LIMIT $2
    ) AS pending) AS tasks,
    (SELECT count(*) FROM (
        SELECT FROM task_states JOIN webhooks ON webhooks.task_id = ANY(ARRAY[task_states.task_id])
        WHERE creator = $1 AND task_states.status = 'pending' AND (registered_by = $1) IS TRUE LIMIT $3
    ) AS awaiting) AS webhooks,
    greatest(0, (SELECT bytes FROM stored_bytes WHERE user_id = $1)) AS bytes";

/// Counts what all users together have: pending tasks up to the limit, webhooks as Postgres last estimated their number,
/// and the size of the tables.
pub(super) fn count_all(connection: &mut PgConnection, limits: Amounts) -> Result<Amounts, Error> {
    let count = prepared(COUNT_ALL)
        .bind::<BigInt, _>(signed(limits.tasks))
        .bind::<Text, _>(SCHEMA)
        .returning::<Counted>();
    Ok(amounts(count.get_result(connection)?))
}

const COUNT_ALL: &str = "
SELECT (SELECT count(*) FROM (SELECT FROM task_states WHERE status = 'pending' LIMIT $1) AS pending) AS tasks,
    (SELECT greatest(0, reltuples)::bigint FROM pg_class WHERE oid = 'webhooks'::regclass) AS webhooks,
    (SELECT coalesce(sum(pg_total_relation_size(oid)), 0)::bigint FROM pg_class
     WHERE relnamespace = to_regnamespace($2) AND relkind = 'r') AS bytes";

/// Adds to the bytes of users, except erased ones who have no tasks.
pub(super) fn add_bytes(
    connection: &mut PgConnection,
    added: &[(UserId, i64)],
) -> Result<(), Error> {
    prepared(ADD_BYTES)
        .bind::<Array<Binary>, _>(column(added, |(user, _)| *user))
        .bind::<Array<BigInt>, _>(column(added, |(_, bytes)| *bytes))
        .execute(connection)?;
    Ok(())
}

// In the order of the keys, so that two processes do not wait for each other. An erased user who has tasks is one whom a restore
// brought back, or one whose row is deleted with the last of them.
const ADD_BYTES: &str = "
INSERT INTO stored_bytes AS known (user_id, bytes)
SELECT id, bytes FROM unnest($1, $2) AS given (id, bytes)
WHERE may_add_rows(id, NULL) OR EXISTS (SELECT FROM tasks WHERE creator = given.id) ORDER BY id
ON CONFLICT (user_id) DO UPDATE SET bytes = known.bytes + excluded.bytes";

pub(crate) fn forget(connection: &mut PgConnection, user: UserId) -> Result<(), Error> {
    prepared("DELETE FROM stored_bytes WHERE user_id = $1")
        .bind::<Binary, _>(user)
        .execute(connection)?;
    Ok(())
}

fn signed(limit: u64) -> i64 {
    i64::try_from(limit).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use diesel::connection::SimpleConnection as _;
    use diesel::prelude::*;
    use testkit::{TestDatabase, eventually, lines, rows_read};
    use values::UserId;

    use super::count;
    use crate::quotas::Amounts;
    use crate::webhooks::store::load_of_user;

    const TASKS: u64 = 1_000;

    /// As many tasks of each of two users, with a webhook each of its creator, and no statistics.
    const FILL: &str = "
        SET search_path = people_task;
        ALTER TABLE task_states SET (autovacuum_enabled = false);
        ALTER TABLE webhooks SET (autovacuum_enabled = false);
        CREATE TEMPORARY TABLE made AS
            SELECT substr(sha256(n::text::bytea), 1, 12) AS id,
                decode(CASE WHEN n % 2 = 0 THEN '{user}' ELSE repeat('ee', 12) END, 'hex') AS creator
            FROM generate_series(1, 2 * {TASKS}) AS n;
        INSERT INTO tasks (id, creator, requester, approver, requester_key, approver_key, title, description, public,
            approver_secret, requester_secret)
        SELECT id, creator, 'a@example.com', 'b@example.com', 'a@example.com', 'b@example.com', 't', 'd', false,
            sha256(id), sha256(sha256(id)) FROM made;
        INSERT INTO task_states (task_id, public, creator, created, approver_key, requester_key, title_key)
        SELECT id, false, creator, now(), 'b@example.com', 'a@example.com', 't' FROM made;
        INSERT INTO webhooks (id, task_id, registered_by, registered_as, url, host)
        SELECT id, id, creator, 'creator', 'http://127.0.0.9/', '127.0.0.9' FROM made;";

    fn filled(user: UserId) -> TestDatabase {
        let database = TestDatabase::people_task(crate::MIGRATIONS);
        let fill = FILL.replace("{TASKS}", &TASKS.to_string());
        let fill = fill.replace("{user}", &user.to_string());
        database.admin().batch_execute(&fill).unwrap();
        database
    }

    /// The stocks of a user, and how many rows and index entries `work` reads in these tables beside them.
    fn counted(
        database: &TestDatabase,
        user: UserId,
        limit: u64,
        tables: &str,
        work: impl FnOnce(&mut PgConnection),
    ) -> (Amounts, u64) {
        let limits = Amounts {
            tasks: limit,
            webhooks: limit,
            ..Amounts::default()
        };
        let counted = database.people_task_connection().transaction(|connection| {
            let counted = count(connection, user, limits).unwrap();
            work(connection);
            Ok::<_, diesel::result::Error>((counted, rows_read(connection, tables)))
        });
        counted.unwrap()
    }

    #[test]
    fn a_count_reads_what_the_user_has_and_not_for_each_task() {
        let user = UserId::generate();
        let tables = "task_states,webhooks";
        let (counted, read) = counted(&filled(user), user, 10 * TASKS, tables, |_| ());
        assert_eq!((counted.tasks, counted.webhooks), (TASKS, TASKS));
        assert!(read < 10 * TASKS, "{read} rows and index entries");
    }

    const DECIDE: &str =
        "UPDATE people_task.task_states SET status = 'approved', decision_made = now()";
    /// A version that did not know how users are related to tasks registered the webhooks.
    const OF_AN_EARLIER_VERSION: &str = "UPDATE people_task.webhooks SET registered_as = NULL";
    const OF_AN_APPROVER: &str = "UPDATE people_task.webhooks
        SET registered_as = 'approver', registered_by = decode('{user}', 'hex')
        WHERE registered_by <> decode('{user}', 'hex')";

    #[test]
    fn webhooks_of_decided_tasks_of_the_user_are_read_by_no_count() {
        for registered in ["", OF_AN_EARLIER_VERSION, OF_AN_APPROVER] {
            let user = UserId::generate();
            let database = filled(user);
            let registered = registered.replace("{user}", &user.to_string());
            let change = format!("{DECIDE}; {registered}");
            database.admin().batch_execute(&change).unwrap();
            let (counted, read) = counted(&database, user, TASKS, "webhooks", |_| ());
            assert_eq!((counted.tasks, counted.webhooks), (0, 0), "{registered}");
            assert!(read < TASKS / 10, "{read} rows and entries: {registered}");
        }
    }

    #[test]
    fn webhooks_for_tasks_of_others_count_for_no_one() {
        let user = UserId::generate();
        let database = filled(user);
        let register = OF_AN_APPROVER.replace("{user}", &user.to_string());
        database.admin().batch_execute(&register).unwrap();
        let (counted, _) = counted(&database, user, 10 * TASKS, "webhooks", |_| ());
        assert_eq!((counted.tasks, counted.webhooks), (TASKS, TASKS));
    }

    #[test]
    fn an_erasure_reads_no_webhooks_of_own_tasks_one_by_one() {
        let user = UserId::generate();
        let (_, read) = counted(&filled(user), user, 0, "webhooks", |connection| {
            assert_eq!(load_of_user(connection, user, 1).unwrap().len(), 0);
        });
        assert!(read < TASKS / 10, "{read} rows and index entries");
    }

    /// Many users with stored bytes. Those with the lower keys have a task each, for which one of the others has an answer.
    const SHARED: &str = "
        SET search_path = people_task;
        CREATE TEMPORARY TABLE made AS
            SELECT id, row_number() OVER (ORDER BY id) AS n
            FROM (SELECT substr(sha256(n::text::bytea), 1, 12) AS id FROM generate_series(1, 100) AS n) AS ids;
        INSERT INTO stored_bytes (user_id, bytes) SELECT id, 100 FROM made;
        INSERT INTO tasks (id, creator, requester, approver, requester_key, approver_key, title, description, public,
            approver_secret, requester_secret)
        SELECT id, id, 'a@example.com', 'b@example.com', 'a@example.com', 'b@example.com', 't', 'd', false,
            sha256(id), sha256(sha256(id)) FROM made WHERE n <= 50;
        INSERT INTO idempotency_keys (key, user_id, task_id, body, answer)
        SELECT sha256(made.id), others.id, made.id, sha256(made.id), 'x'
        FROM made JOIN made AS others ON others.n = made.n + 50;";

    #[tokio::test]
    async fn bytes_of_users_are_locked_in_the_order_of_their_keys() {
        for (table, owner) in [("idempotency_keys", "user_id"), ("tasks", "creator")] {
            let database = TestDatabase::people_task(crate::MIGRATIONS);
            database.admin().batch_execute(SHARED).unwrap();
            let (mut first, mut other) = (database.admin(), database.admin());
            let lowest = format!("SELECT {owner} FROM people_task.{table} ORDER BY 1 LIMIT 1");
            let lock = format!(
                "BEGIN; SELECT FROM people_task.stored_bytes WHERE user_id = ({lowest}) FOR UPDATE"
            );
            first.batch_execute(&lock).unwrap();
            let (mut second, delete) =
                (database.admin(), format!("DELETE FROM people_task.{table}"));
            let deleting = std::thread::spawn(move || second.batch_execute(&delete).unwrap());
            eventually("the deletion to wait", async || {
                (lines(&mut other, WAITING).len() == 1).then_some(())
            })
            .await;
            assert_eq!(lines(&mut other, FREE), ["99"], "{table}");
            first.batch_execute("ROLLBACK").unwrap();
            deleting.join().unwrap();
        }
    }

    const WAITING: &str = "SELECT query AS line FROM pg_stat_activity
        WHERE datname = current_database() AND wait_event_type = 'Lock'";
    /// How many rows no transaction has locked.
    const FREE: &str = "SELECT count(*)::text AS line FROM
        (SELECT FROM people_task.stored_bytes FOR UPDATE SKIP LOCKED) AS free";

    #[tokio::test]
    async fn answers_are_locked_before_the_bytes_of_their_users() {
        let database = TestDatabase::people_task(crate::MIGRATIONS);
        database.admin().batch_execute(SHARED).unwrap();
        let (mut first, mut other) = (database.admin(), database.admin());
        let lock =
            "BEGIN; SELECT FROM people_task.idempotency_keys ORDER BY key LIMIT 1 FOR UPDATE";
        first.batch_execute(lock).unwrap();
        let mut second = database.admin();
        let delete = "DELETE FROM people_task.tasks";
        let deleting = std::thread::spawn(move || second.batch_execute(delete).unwrap());
        eventually("the deletion to wait", async || {
            (lines(&mut other, WAITING).len() == 1).then_some(())
        })
        .await;
        assert_eq!(lines(&mut other, FREE), ["100"]);
        first.batch_execute("ROLLBACK").unwrap();
        deleting.join().unwrap();
    }
}
