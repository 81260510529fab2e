//! The statements of [`ownership`](super::ownership), in raw SQL because each reads and changes several rows at once.

use std::time::Duration;

use chrono::{DateTime, Utc};
use database::{Error, interval, prepared};
use diesel::sql_types::{Array, BigInt, Bool, Integer, Interval, Text, Timestamptz};
use diesel::{PgConnection, Queryable, RunQueryDsl as _};

/// What a worker can do, as a number that grows. A kind of delivery that needs more than the workers of the version before
/// can do raises it, and is added only while no worker of a lower number runs.
const PROTOCOL: i64 = OWNS_SHARDS;
/// Deliveries of due dates.
pub(super) const KNOWS_DUE_DATES: i64 = 1;
/// Hosts are owned. Workers before claimed single deliveries, so only one of both kinds may be at work.
const OWNS_SHARDS: i64 = 2;

/// What a worker knows its row by.
#[derive(Debug, Clone, Queryable)]
pub(super) struct Row {
    /// Its number.
    pub(super) id: i32,
    /// Another worker may get the number after a dump was restored, and never this.
    instance: String,
}

/// Inserts a worker. The commit waits for the disk: after a crash of the database no other worker may get the same number.
pub(super) fn join(connection: &mut PgConnection) -> Result<Row, Error> {
    prepared("SET LOCAL synchronous_commit = on").execute(connection)?;
    let insert = "INSERT INTO delivery_workers (protocol, sends_due) VALUES ($1, true) RETURNING id, instance";
    let insert = prepared(insert).bind::<BigInt, _>(PROTOCOL);
    Ok(insert
        .returning::<(Integer, Text)>()
        .get_result(connection)?)
}

/// The workers and shards, as one worker sees them.
#[derive(Debug, Queryable)]
pub(super) struct Workers {
    /// Whether the worker still has its row.
    pub(super) is_member: bool,
    /// The number of workers that have a share: neither silent nor stopping.
    pub(super) workers: i64,
    /// How many of them are older.
    pub(super) older: i64,
    /// How many of them claim single deliveries.
    pub(super) claiming: i64,
    /// Those of the others that have been silent for too long.
    pub(super) silent: Vec<i32>,
    pub(super) owned: Vec<i32>,
    /// The clock of the database, by which beats are old.
    pub(super) clock: DateTime<Utc>,
}

/// Says that a worker is alive, and whether it stops.
///
/// The last beat of another is later than now only if the clock was set back. It counts from now, so one that is dead is
/// silent after a while.
pub(super) fn beat(
    connection: &mut PgConnection,
    worker: &Row,
    is_stopping: bool,
    silence: Duration,
) -> Result<Workers, Error> {
    let beat = prepared(
        "WITH own AS (
            UPDATE delivery_workers SET beat = now(), is_stopping = $4 WHERE id = $1 AND instance = $5 RETURNING id
        ), ahead AS (
            UPDATE delivery_workers SET beat = now() WHERE id = ANY(ARRAY(
                SELECT id FROM delivery_workers WHERE id <> $1 AND beat > now() + $2 FOR UPDATE SKIP LOCKED))
        ), workers AS (
            SELECT id, protocol, is_stopping, id <> $1 AND beat < now() - $2 AS is_silent FROM delivery_workers
        )
        SELECT EXISTS (SELECT FROM own) AS is_member,
            count(*) FILTER (WHERE NOT is_silent AND NOT is_stopping) AS workers,
            count(*) FILTER (WHERE NOT is_silent AND NOT is_stopping AND id < $1) AS older,
            count(*) FILTER (WHERE protocol < $3) AS claiming,
            coalesce(array_agg(id) FILTER (WHERE is_silent), '{}') AS silent,
            ARRAY(SELECT id FROM delivery_shards WHERE worker_id = $1) AS owned,
            now() AS clock
        FROM workers",
    )
    .bind::<Integer, _>(worker.id)
    .bind::<Interval, _>(interval(silence))
    .bind::<BigInt, _>(OWNS_SHARDS)
    .bind::<Bool, _>(is_stopping)
    .bind::<Text, _>(&worker.instance)
    .returning::<(Bool, BigInt, BigInt, BigInt, Array<Integer>, Array<Integer>, Timestamptz)>();
    Ok(beat.get_result(connection)?)
}

/// Deletes those of these workers that are still silent. Their shards have no owner from then on. Returns how many.
pub(super) fn delete_silent(
    connection: &mut PgConnection,
    workers: &[i32],
    silence: Duration,
) -> Result<usize, Error> {
    let delete = prepared("DELETE FROM delivery_workers WHERE id = ANY($1) AND beat < now() - $2")
        .bind::<Array<Integer>, _>(workers)
        .bind::<Interval, _>(interval(silence));
    Ok(delete.execute(connection)?)
}

#[derive(Debug, Queryable)]
pub(super) struct Taken {
    pub(super) id: i32,
    /// Its last owner died.
    pub(super) orphaned: bool,
    pub(super) at: DateTime<Utc>,
}

/// Takes at most `number` shards that have no owner, inside a transaction whose commit waits for the disk: no crash of the
/// database gives a shard back to another worker.
pub(super) fn take(
    connection: &mut PgConnection,
    worker: i32,
    number: i64,
) -> Result<Vec<Taken>, Error> {
    prepared("SET LOCAL synchronous_commit = on").execute(connection)?;
    let take = prepared(TAKE)
        .bind::<Integer, _>(worker)
        .bind::<BigInt, _>(number)
        .returning::<(Integer, Bool, Timestamptz)>();
    Ok(take.load(connection)?)
}

// A worker that was taken for dead takes nothing: the lock of its row makes the one that deletes it wait. A shard may have
// been taken since the statement began, by a worker that joined since then. `free` has the owner of that moment, and
// `delivery_shards` the one before.
const TAKE: &str = "
WITH own AS (
    SELECT id FROM delivery_workers WHERE id = $1 FOR KEY SHARE
), free AS (
    SELECT id, worker_id FROM delivery_shards
    WHERE worker_id IS NULL OR worker_id NOT IN (SELECT id FROM delivery_workers)
    ORDER BY id LIMIT $2
    FOR NO KEY UPDATE SKIP LOCKED
)
UPDATE delivery_shards SET worker_id = own.id FROM own, free
WHERE delivery_shards.id = ANY(ARRAY[free.id]) AND delivery_shards.worker_id IS NOT DISTINCT FROM free.worker_id
RETURNING delivery_shards.id, free.worker_id IS NOT NULL AS orphaned, now() AS at";

pub(super) fn give_up(
    connection: &mut PgConnection,
    worker: i32,
    shards: &[i32],
) -> Result<usize, Error> {
    let give_up = prepared(
        "UPDATE delivery_shards SET worker_id = NULL WHERE worker_id = $1 AND id = ANY($2)",
    )
    .bind::<Integer, _>(worker)
    .bind::<Array<Integer>, _>(shards);
    Ok(give_up.execute(connection)?)
}

/// Deletes a worker that has ended everything, and gives its shards up. It must be run in a transaction.
pub(super) fn leave(connection: &mut PgConnection, worker: i32) -> Result<(), Error> {
    prepared("UPDATE delivery_shards SET worker_id = NULL WHERE worker_id = $1")
        .bind::<Integer, _>(worker)
        .execute(connection)?;
    prepared("DELETE FROM delivery_workers WHERE id = $1")
        .bind::<Integer, _>(worker)
        .execute(connection)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use database::Error;
    use diesel::PgConnection;
    use diesel::connection::{Connection as _, SimpleConnection as _};
    use testkit::{TestDatabase, eventually, lines};

    use super::{Row, join, take};
    use crate::deliveries::worker::due_store::ON_CONNECT;
    use crate::deliveries::worker::periodic_store::handle_passed;

    #[tokio::test]
    async fn a_shard_that_a_new_worker_has_just_taken_is_not_taken_from_it() {
        let test = TestDatabase::people_task(crate::MIGRATIONS);
        let (mut first, mut second) =
            (test.people_task_connection(), test.people_task_connection());
        let id = first.transaction(|first| join(first)).unwrap().id;
        // The first one's statement begins before the second one joins, and goes on once the second one has its shards.
        let mut holder = test.admin();
        let hold =
            format!("BEGIN; SELECT FROM people_task.delivery_workers WHERE id = {id} FOR UPDATE");
        holder.batch_execute(&hold).unwrap();
        let taking = std::thread::spawn(move || {
            let taken = first.transaction(|connection| take(connection, id, 64));
            taken.unwrap();
        });
        eventually("the first worker to wait", async || {
            let waiting = "SELECT query AS line FROM pg_stat_activity
                WHERE datname = current_database() AND wait_event_type = 'Lock'";
            (lines(&mut test.admin(), waiting).len() == 1).then_some(())
        })
        .await;
        let id = second.transaction(|second| join(second)).unwrap().id;
        let taken = second.transaction(|connection| take(connection, id, 64));
        let taken = taken.unwrap().len();
        holder.batch_execute("ROLLBACK").unwrap();
        taking.join().unwrap();
        let owned = format!(
            "SELECT id::text AS line FROM people_task.delivery_shards WHERE worker_id = {id}"
        );
        assert_eq!(lines(&mut holder, &owned).len(), taken);
        assert!(taken > 1);
    }

    /// Whether the commit of a transaction waits for the disk that does this.
    fn waits(connection: &mut PgConnection, act: impl FnOnce(&mut PgConnection)) -> bool {
        let waits = connection.transaction(|connection| {
            act(connection);
            let setting = "SELECT current_setting('synchronous_commit') AS line";
            Ok::<_, Error>(lines(connection, setting) == ["on"])
        });
        waits.unwrap()
    }

    #[test]
    fn commits_that_a_crash_of_the_database_must_not_undo_wait_for_the_disk() {
        let test = TestDatabase::people_task(crate::MIGRATIONS);
        let connection: &mut PgConnection = &mut test.people_task_connection();
        connection.batch_execute(ON_CONNECT).unwrap();
        assert!(!waits(connection, |_| ()));
        let mut worker: Option<Row> = None;
        assert!(waits(connection, |connection| {
            worker = Some(join(connection).unwrap());
        }));
        let id = worker.unwrap().id;
        assert!(waits(connection, |connection| {
            take(connection, id, 1).unwrap();
        }));
        assert!(waits(connection, |connection| {
            handle_passed(connection, &[], &[]).unwrap();
        }));
        assert!(!waits(connection, |_| ()));
    }
}
