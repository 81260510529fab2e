use database::prepared;
use diesel::sql_types::BigInt;
use diesel::{PgConnection, QueryResult, QueryableByName, RunQueryDsl as _};

/// The size and age of the backlog.
#[derive(Debug, Clone, Copy, QueryableByName)]
pub(super) struct Backlog {
    /// The number of unfinished deliveries, counted up to the limit.
    #[diesel(sql_type = BigInt)]
    pub(super) pending: i64,
    /// The number of due deliveries that are not parked, counted up to the limit.
    #[diesel(sql_type = BigInt)]
    pub(super) due: i64,
    /// The number of deliveries that are not tried any more, because they end workers.
    #[diesel(sql_type = BigInt)]
    pub(super) parked: i64,
    /// How long the oldest one that is not parked has been due, in milliseconds.
    #[diesel(sql_type = BigInt)]
    pub(super) oldest: i64,
}

/// Reads the backlog. It counts at most `limit` deliveries, and looks for the oldest one of at most 10,000 hosts.
pub(super) fn load_backlog(connection: &mut PgConnection, limit: i64) -> QueryResult<Backlog> {
    prepared(BACKLOG)
        .bind::<BigInt, _>(limit)
        .get_result(connection)
}

const BACKLOG: &str = "
WITH RECURSIVE step AS (
    (SELECT host, next_attempt FROM deliveries WHERE NOT (lost_claims >= 2 AND lost_trials >= 3)
        ORDER BY host, next_attempt LIMIT 1)
    UNION ALL
    SELECT following.host, following.next_attempt FROM step CROSS JOIN LATERAL (
        SELECT host, next_attempt FROM deliveries
        WHERE deliveries.host > step.host AND NOT (lost_claims >= 2 AND lost_trials >= 3)
        ORDER BY host, next_attempt LIMIT 1
    ) AS following
), hosts AS (
    SELECT next_attempt FROM step LIMIT 10000
), counted AS (
    SELECT next_attempt FROM deliveries ORDER BY host, next_attempt LIMIT $1
)
SELECT count(*) AS pending,
    greatest(0, count(*) FILTER (WHERE next_attempt <= now()) - (
        SELECT count(*) FROM deliveries WHERE lost_claims >= 2 AND lost_trials >= 3 AND next_attempt <= now()
    )) AS due,
    (SELECT count(*) FROM deliveries WHERE lost_claims >= 2 AND lost_trials >= 3) AS parked,
    coalesce(greatest(0, extract(epoch FROM now() - (SELECT min(next_attempt) FROM hosts)) * 1000), 0)::bigint
        AS oldest
FROM counted";
