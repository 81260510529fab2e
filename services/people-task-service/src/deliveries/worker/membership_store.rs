//! The statements of [`membership`](super::membership), in raw SQL because each reads and changes several rows at once.

use std::time::Duration;

use database::{Error, prepared};
use diesel::sql_types::{Array, BigInt, Integer, Nullable};
use diesel::{PgConnection, QueryableByName, RunQueryDsl as _};

#[derive(QueryableByName)]
struct Id {
    #[diesel(sql_type = Integer)]
    id: i32,
}

/// Inserts a worker without places, and returns its number.
pub(super) fn join(connection: &mut PgConnection) -> Result<i32, Error> {
    let id: Id = prepared("INSERT INTO delivery_workers DEFAULT VALUES RETURNING id")
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
            coalesce(array_agg(id) FILTER (WHERE id <> $1 AND beat < now() - $3 * interval '1 ms'), '{}') AS silent
        FROM delivery_workers",
    )
    .bind::<Integer, _>(worker)
    .bind::<Integer, _>(places)
    .bind::<BigInt, _>(milliseconds(silence));
    Ok(beat.get_result(connection)?)
}

/// Lets the transaction be the only one that gives or takes places.
pub(super) fn lock(connection: &mut PgConnection) -> Result<(), Error> {
    prepared("SELECT pg_advisory_xact_lock(hashtextextended('delivery_workers', 0))")
        .execute(connection)?;
    Ok(())
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

/// What became of the claims of workers that ended.
#[derive(Debug, Clone, Copy, QueryableByName)]
pub(super) struct Released {
    /// The number of claims.
    #[diesel(sql_type = BigInt)]
    pub(super) claims: i64,
    /// How many of the deliveries will not be tried any more.
    #[diesel(sql_type = BigInt)]
    pub(super) parked: i64,
}

/// Deletes those of these workers that are still silent, and returns their number.
pub(super) fn delete_silent(
    connection: &mut PgConnection,
    workers: &[i32],
    silence: Duration,
) -> Result<usize, Error> {
    let delete = prepared(
        "DELETE FROM delivery_workers WHERE id = ANY($1) AND beat < now() - $2 * interval '1 ms'",
    )
    .bind::<Array<Integer>, _>(workers)
    .bind::<BigInt, _>(milliseconds(silence));
    Ok(delete.execute(connection)?)
}

/// Releases the claims of workers that do not exist. It must be a statement of its own, because deleting a worker waits
/// for its last claim.
///
/// The deliveries of a claim that was lost the second time wait, longer each time, and are then tried apart from others.
/// A delivery is parked when three workers in a row ended while they tried it so.
pub(super) fn release_lost_claims(connection: &mut PgConnection) -> Result<Released, Error> {
    Ok(prepared(RELEASE).get_result(connection)?)
}

const RELEASE: &str = "
WITH released AS (
    UPDATE deliveries SET worker_id = NULL, lost_claims = lost_claims + 1,
        lost_trials = lost_trials + on_trial::integer, on_trial = false,
        next_attempt = CASE WHEN lost_claims = 0 THEN next_attempt
            ELSE now() + least(interval '5 minutes', interval '1 second' * power(2, least(lost_claims, 10))) END,
        attempt_log = CASE WHEN on_trial AND lost_trials = 2
            THEN attempt_log || jsonb_build_array(jsonb_build_object(
                'at', to_char(now() AT TIME ZONE 'UTC', 'YYYY-MM-DD\"T\"HH24:MI:SS.MS\"Z\"'), 'durationMs', 0,
                'statusCode', NULL, 'response', NULL,
                'error', 'parked: three workers ended while they sent this delivery; redeliver it to try again'))
            ELSE attempt_log END
    WHERE worker_id IS NOT NULL AND worker_id <> ALL(ARRAY(SELECT id FROM delivery_workers))
    RETURNING lost_trials
)
SELECT count(*) AS claims, count(*) FILTER (WHERE lost_trials = 3) AS parked FROM released";

/// Deletes a worker that has no claims any more.
pub(super) fn leave(connection: &mut PgConnection, worker: i32) -> Result<(), Error> {
    prepared("DELETE FROM delivery_workers WHERE id = $1")
        .bind::<Integer, _>(worker)
        .execute(connection)?;
    Ok(())
}

fn milliseconds(duration: Duration) -> i64 {
    i64::try_from(duration.as_millis()).unwrap_or(i64::MAX)
}
