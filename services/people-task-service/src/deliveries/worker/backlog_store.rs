use database::prepared;
use diesel::sql_types::BigInt;
use diesel::{PgConnection, QueryResult, QueryableByName, RunQueryDsl as _};

/// The size and age of the backlog.
#[derive(Debug, Clone, Copy, QueryableByName)]
pub(super) struct Backlog {
    /// The number of unfinished deliveries, counted up to the limit.
    #[diesel(sql_type = BigInt)]
    pub(super) pending: i64,
    /// The number of due deliveries, counted up to the limit.
    #[diesel(sql_type = BigInt)]
    pub(super) due: i64,
    /// How long the oldest one has been due, in milliseconds.
    #[diesel(sql_type = BigInt)]
    pub(super) oldest: i64,
}

/// Reads the backlog. It counts at most `limit` deliveries, and looks for the oldest one in at most
/// [`ORIGINS`] origins.
pub(super) fn load_backlog(connection: &mut PgConnection, limit: i64) -> QueryResult<Backlog> {
    prepared(BACKLOG)
        .bind::<BigInt, _>(limit)
        .bind::<BigInt, _>(ORIGINS)
        .get_result(connection)
}

const ORIGINS: i64 = 10_000;

const BACKLOG: &str = "
WITH RECURSIVE step AS (
    (SELECT origin, next_attempt FROM deliveries WHERE status = 'pending'
     ORDER BY origin, next_attempt, id LIMIT 1)
    UNION ALL
    SELECT following.origin, following.next_attempt FROM step CROSS JOIN LATERAL (
        SELECT origin, next_attempt FROM deliveries
        WHERE status = 'pending' AND deliveries.origin > step.origin
        ORDER BY origin, next_attempt, id LIMIT 1
    ) AS following
), origins AS (
    SELECT next_attempt FROM step LIMIT $2
), counted AS (
    SELECT next_attempt FROM deliveries WHERE status = 'pending'
    ORDER BY origin, next_attempt, id LIMIT $1
)
SELECT count(*) AS pending,
    count(*) FILTER (WHERE next_attempt <= now()) AS due,
    coalesce(greatest(0, extract(epoch FROM now() - (SELECT min(next_attempt) FROM origins)) * 1000), 0)::bigint
        AS oldest
FROM counted";
