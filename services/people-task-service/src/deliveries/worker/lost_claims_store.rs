//! The statements of [`lost_claims`](super::lost_claims). They read all waiting deliveries, because an index of claims
//! would have to be written with each claim.

use std::time::Duration;

use database::{Error, interval, prepared};
use diesel::sql_types::{Array, BigInt, Integer, Interval};
use diesel::{PgConnection, QueryableByName, RunQueryDsl as _};

#[derive(QueryableByName)]
struct WorkerId {
    #[diesel(sql_type = Integer)]
    id: i32,
}

/// What became of the claims of workers that ended.
#[derive(Debug, Clone, Copy, Default, QueryableByName)]
pub(super) struct Released {
    /// The number of claims.
    #[diesel(sql_type = BigInt)]
    pub(super) claims: i64,
    /// How many of the deliveries will not be tried any more.
    #[diesel(sql_type = BigInt)]
    pub(super) parked: i64,
}

/// Deletes those of these workers that are still silent and that no claim has locked, and releases their claims. It must
/// be run in a transaction.
pub(super) fn release(
    connection: &mut PgConnection,
    workers: &[i32],
    silence: Duration,
) -> Result<Released, Error> {
    let deleted: Vec<WorkerId> = prepared(DELETE_SILENT)
        .bind::<Array<Integer>, _>(workers)
        .bind::<Interval, _>(interval(silence))
        .load(connection)?;
    release_claims(connection, deleted)
}

/// Releases the claims of workers that have no row. It must be run in a transaction.
pub(super) fn release_unknown(connection: &mut PgConnection) -> Result<Released, Error> {
    // A claim can be seen only together with its worker's row, and no number is used twice. So these workers stay
    // unknown, whatever is claimed meanwhile.
    let unknown: Vec<WorkerId> = prepared(UNKNOWN).load(connection)?;
    release_claims(connection, unknown)
}

fn release_claims(
    connection: &mut PgConnection,
    workers: Vec<WorkerId>,
) -> Result<Released, Error> {
    if workers.is_empty() {
        return Ok(Released::default());
    }
    let ids: Vec<_> = workers.into_iter().map(|worker| worker.id).collect();
    let release = prepared(RELEASE).bind::<Array<Integer>, _>(ids);
    Ok(release.get_result(connection)?)
}

const UNKNOWN: &str = "
SELECT DISTINCT worker_id AS id FROM deliveries
WHERE worker_id IS NOT NULL AND worker_id <> ALL(ARRAY(SELECT id FROM delivery_workers))";

const DELETE_SILENT: &str = "
DELETE FROM delivery_workers WHERE id = ANY(ARRAY(
    SELECT id FROM delivery_workers WHERE id = ANY($1) AND beat < now() - $2 FOR UPDATE SKIP LOCKED
))
RETURNING id";

/// The deliveries of a claim that was lost the second time wait, longer each time, and are then tried apart from others.
/// A delivery is parked when three workers in a row ended while they tried it so.
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
    WHERE worker_id = ANY($1)
    RETURNING lost_trials
)
SELECT count(*) AS claims, count(*) FILTER (WHERE lost_trials = 3) AS parked FROM released";
