//! The statements of [`membership`](super::membership), in raw SQL because each reads and changes several rows at once.

use std::time::Duration;

use database::{Error, interval, prepared};
use diesel::sql_types::{Array, BigInt, Bool, Integer, Interval, Nullable, Text};
use diesel::{PgConnection, QueryableByName, RunQueryDsl as _};

use crate::deliveries::worker::claims_store;

/// What a worker can do, as a number that grows. A kind of delivery that needs more than the workers of the version before
/// can do raises it, and is added only while no worker of a lower number runs.
const PROTOCOL: i64 = KNOWS_DUE_DATES;
/// Deliveries of due dates.
pub(super) const KNOWS_DUE_DATES: i64 = 1;

#[derive(QueryableByName)]
struct Id {
    #[diesel(sql_type = Integer)]
    id: i32,
}

/// Inserts a worker without places, and returns its number. The commit waits for the disk: after a crash of the database
/// no other worker may get the same number.
pub(super) fn join(connection: &mut PgConnection) -> Result<i32, Error> {
    prepared("SET LOCAL synchronous_commit = on").execute(connection)?;
    let insert =
        "INSERT INTO delivery_workers (protocol, sends_due) VALUES ($1, true) RETURNING id";
    let id: Id = prepared(insert)
        .bind::<BigInt, _>(PROTOCOL)
        .get_result(connection)?;
    Ok(id.id)
}

/// The workers, as one of them sees them.
#[derive(Debug, QueryableByName)]
pub(super) struct Workers {
    /// The worker's own places; `None` if another one has deleted it.
    #[diesel(sql_type = Nullable<Integer>)]
    pub(super) places: Option<i32>,
    /// The number of workers.
    #[diesel(sql_type = BigInt)]
    pub(super) workers: i64,
    /// How many of them are older.
    #[diesel(sql_type = BigInt)]
    pub(super) older: i64,
    /// Those of the others that have been silent for too long.
    #[diesel(sql_type = Array<Integer>)]
    pub(super) silent: Vec<i32>,
    /// Changes when the server starts, recovers from a crash of one of its processes, or is another one.
    #[diesel(sql_type = Text)]
    pub(super) server_start: String,
}

/// Says that a worker is alive, and lowers its places to `places`.
pub(super) fn beat(
    connection: &mut PgConnection,
    worker: i32,
    places: i32,
    silence: Duration,
) -> Result<Workers, Error> {
    let beat = prepared(
        "WITH own AS (
            UPDATE delivery_workers SET beat = now(), places = least(places, $2) WHERE id = $1 RETURNING places
        )
        SELECT (SELECT places FROM own) AS places, count(*) AS workers, count(*) FILTER (WHERE id < $1) AS older,
            coalesce(array_agg(id) FILTER (WHERE id <> $1 AND beat < now() - $3), '{}') AS silent,
            -- Statistics are reset when the server recovers from a crash.
            concat_ws(' ', pg_postmaster_start_time(), (SELECT stats_reset FROM pg_stat_bgwriter)) AS server_start
        FROM delivery_workers",
    )
    .bind::<Integer, _>(worker)
    .bind::<Integer, _>(places)
    .bind::<Interval, _>(interval(silence));
    Ok(beat.get_result(connection)?)
}

#[derive(QueryableByName)]
struct Locked {
    #[diesel(sql_type = Bool)]
    locked: bool,
}

/// Lets the transaction be the only one that takes places; `false` if another one is.
pub(super) fn try_lock(connection: &mut PgConnection) -> Result<bool, Error> {
    let lock: Locked = prepared(
        "SELECT pg_try_advisory_xact_lock(hashtextextended('delivery_workers', 0)) AS locked",
    )
    .get_result(connection)?;
    Ok(lock.locked)
}

#[derive(QueryableByName)]
struct Places {
    #[diesel(sql_type = Integer)]
    places: i32,
}

/// Raises a worker's places to `places`, as far as the others leave them of the `limit` of a host. Returns its places.
pub(super) fn raise_places(
    connection: &mut PgConnection,
    worker: i32,
    places: i32,
    limit: i32,
) -> Result<i32, Error> {
    let raise = prepared(
        "UPDATE delivery_workers SET places = greatest(places, least($2, $3 - (
            SELECT coalesce(sum(places), 0) FROM delivery_workers WHERE id <> $1)::integer))
        WHERE id = $1 RETURNING places",
    )
    .bind::<Integer, _>(worker)
    .bind::<Integer, _>(places)
    .bind::<Integer, _>(limit);
    let raised: Places = raise.get_result(connection)?;
    Ok(raised.places)
}

/// Deletes a worker with its claims, of which it knows none any more. It must be run in a transaction.
pub(super) fn leave(connection: &mut PgConnection, worker: i32) -> Result<(), Error> {
    claims_store::release_all(connection, worker)?;
    prepared("DELETE FROM delivery_workers WHERE id = $1")
        .bind::<Integer, _>(worker)
        .execute(connection)?;
    Ok(())
}
