use database::{Error, prepared};
use diesel::sql_types::{BigInt, Double};
use diesel::{PgConnection, Queryable, RunQueryDsl as _};
use serde::Serialize;
use utoipa::ToSchema;

/// The deliveries that have not ended.
#[derive(Debug, Queryable, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = DeliveryBacklog)]
pub(crate) struct Backlog {
    /// How many deliveries are pending, counted up to 100,000.
    #[schema(example = 120)]
    pub(crate) pending: i64,
    /// How many should be under way now.
    #[schema(example = 3)]
    pub(crate) due: i64,
    /// How long the oldest of them has waited, in seconds.
    #[schema(example = 0.4)]
    pub(crate) oldest_due_seconds: f64,
    /// How many are not tried any more, because they ended workers, until they are sent again.
    #[schema(example = 0)]
    pub(crate) parked: i64,
    /// How many wait for a paused host, counted up to 100,000.
    #[schema(example = 80)]
    pub(crate) paused: i64,
    /// How many hosts are paused.
    #[schema(example = 1)]
    pub(crate) paused_hosts: i64,
}

/// The backlog is counted up to this number. No alarm needs the exact size of a larger one.
const MAX_COUNTED: i64 = 100_000;

/// Reads the backlog. It looks for the oldest delivery of at most 10,000 hosts.
pub(crate) fn load_backlog(connection: &mut PgConnection) -> Result<Backlog, Error> {
    let backlog = prepared(BACKLOG)
        .bind::<BigInt, _>(MAX_COUNTED)
        .returning::<(BigInt, BigInt, Double, BigInt, BigInt, BigInt)>();
    Ok(backlog.get_result(connection)?)
}

// A delivery with five lost trials is parked, see `worker/due_store.rs`.
const BACKLOG: &str = "
WITH RECURSIVE step AS (
    (SELECT host, next_attempt FROM deliveries WHERE NOT (coalesce(lost_claims, option_claims) >= 2 AND lost_trials >= 5)
        ORDER BY host, next_attempt LIMIT 1)
    UNION ALL
    SELECT following.host, following.next_attempt FROM step CROSS JOIN LATERAL (
        SELECT host, next_attempt FROM deliveries
        WHERE deliveries.host > step.host AND NOT (coalesce(lost_claims, option_claims) >= 2 AND lost_trials >= 5)
        ORDER BY host, next_attempt LIMIT 1
    ) AS following
), hosts AS (
    SELECT next_attempt FROM (SELECT * FROM step LIMIT 10000) AS first
    WHERE host NOT IN (SELECT host FROM paused_hosts)
), parked AS (
    SELECT host, next_attempt FROM deliveries WHERE lost_claims >= 2 AND lost_trials >= 5
    UNION ALL
    SELECT host, next_attempt FROM deliveries WHERE option_claims >= 2 AND lost_trials >= 5
), counted AS (
    SELECT host, next_attempt FROM deliveries ORDER BY host, next_attempt LIMIT $1
)
SELECT count(*) AS pending,
    greatest(0, count(*) FILTER (WHERE next_attempt <= now() AND host NOT IN (SELECT host FROM paused_hosts)) - (
        SELECT count(*) FROM parked WHERE next_attempt <= now() AND host NOT IN (SELECT host FROM paused_hosts)
    )) AS due,
    coalesce(greatest(0, extract(epoch FROM now() - (SELECT min(next_attempt) FROM hosts)) * 1000), 0)::bigint
        / 1000::double precision AS oldest_due_seconds,
    (SELECT count(*) FROM parked) AS parked,
    (SELECT count(*) FROM (
        SELECT FROM paused_hosts CROSS JOIN LATERAL (
            SELECT FROM deliveries WHERE deliveries.host = paused_hosts.host ORDER BY next_attempt LIMIT $1
        ) AS waiting LIMIT $1
    ) AS held) AS paused,
    (SELECT count(*) FROM paused_hosts) AS paused_hosts
FROM counted";
