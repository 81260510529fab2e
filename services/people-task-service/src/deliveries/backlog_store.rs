use database::{Error, prepared};
use diesel::sql_types::BigInt;
use diesel::{PgConnection, QueryableByName, RunQueryDsl as _};

/// The size and age of the backlog.
#[derive(Debug, Clone, Copy, QueryableByName)]
pub(crate) struct Backlog {
    /// The number of unfinished deliveries, counted up to the limit.
    #[diesel(sql_type = BigInt)]
    pub(crate) pending: i64,
    /// The number of due deliveries that are neither parked nor paused, counted up to the limit.
    #[diesel(sql_type = BigInt)]
    pub(crate) due: i64,
    /// The number of deliveries that are not tried any more, because they end workers.
    #[diesel(sql_type = BigInt)]
    pub(crate) parked: i64,
    /// The number of deliveries that wait for a paused host, counted up to the limit.
    #[diesel(sql_type = BigInt)]
    pub(crate) paused: i64,
    /// The number of paused hosts.
    #[diesel(sql_type = BigInt)]
    pub(crate) paused_hosts: i64,
    /// How long the oldest one that is neither parked nor paused has been due, in milliseconds.
    #[diesel(sql_type = BigInt)]
    pub(crate) oldest: i64,
}

/// The backlog is counted up to this number. No alarm needs the exact size of a larger one.
pub(crate) const MAX_COUNTED: i64 = 100_000;

/// Reads the backlog. It counts at most `limit` deliveries, and looks for the oldest one of at most 10,000 hosts.
pub(crate) fn load_backlog(connection: &mut PgConnection, limit: i64) -> Result<Backlog, Error> {
    let backlog = prepared(BACKLOG).bind::<BigInt, _>(limit);
    Ok(backlog.get_result(connection)?)
}

const BACKLOG: &str = "
WITH RECURSIVE step AS (
    (SELECT host, next_attempt FROM deliveries WHERE NOT (coalesce(lost_claims, option_claims) >= 2 AND lost_trials >= 3)
        ORDER BY host, next_attempt LIMIT 1)
    UNION ALL
    SELECT following.host, following.next_attempt FROM step CROSS JOIN LATERAL (
        SELECT host, next_attempt FROM deliveries
        WHERE deliveries.host > step.host AND NOT (coalesce(lost_claims, option_claims) >= 2 AND lost_trials >= 3)
        ORDER BY host, next_attempt LIMIT 1
    ) AS following
), hosts AS (
    SELECT next_attempt FROM (SELECT * FROM step LIMIT 10000) AS first
    WHERE host NOT IN (SELECT host FROM paused_hosts)
), parked AS (
    SELECT host, next_attempt FROM deliveries WHERE lost_claims >= 2 AND lost_trials >= 3
    UNION ALL
    SELECT host, next_attempt FROM deliveries WHERE option_claims >= 2 AND lost_trials >= 3
), counted AS (
    SELECT host, next_attempt FROM deliveries ORDER BY host, next_attempt LIMIT $1
)
SELECT count(*) AS pending,
    greatest(0, count(*) FILTER (WHERE next_attempt <= now() AND host NOT IN (SELECT host FROM paused_hosts)) - (
        SELECT count(*) FROM parked WHERE next_attempt <= now() AND host NOT IN (SELECT host FROM paused_hosts)
    )) AS due,
    (SELECT count(*) FROM parked) AS parked,
    (SELECT count(*) FROM (
        SELECT FROM paused_hosts CROSS JOIN LATERAL (
            SELECT FROM deliveries WHERE deliveries.host = paused_hosts.host ORDER BY next_attempt LIMIT $1
        ) AS waiting LIMIT $1
    ) AS held) AS paused,
    (SELECT count(*) FROM paused_hosts) AS paused_hosts,
    coalesce(greatest(0, extract(epoch FROM now() - (SELECT min(next_attempt) FROM hosts)) * 1000), 0)::bigint
        AS oldest
FROM counted";
