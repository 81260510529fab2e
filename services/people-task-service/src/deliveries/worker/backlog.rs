use database::prepared;
use diesel::sql_types::BigInt;
use diesel::{PgConnection, QueryResult, QueryableByName, RunQueryDsl as _};

/// How much there is to do.
#[derive(Debug, Clone, Copy, QueryableByName)]
pub(super) struct Backlog {
    /// Deliveries that are not finished; counted up to the limit.
    #[diesel(sql_type = BigInt)]
    pub(super) pending: i64,
    /// Those whose time has come; counted up to the limit.
    #[diesel(sql_type = BigInt)]
    pub(super) due: i64,
    /// How long the oldest of them has been due, in milliseconds.
    #[diesel(sql_type = BigInt)]
    pub(super) oldest: i64,
}

/// Looks at the backlog, at no more than `limit` deliveries of it. The oldest is looked for among those of
/// at most [`ORIGINS`] origins.
pub(super) fn backlog(connection: &mut PgConnection, limit: i64) -> QueryResult<Backlog> {
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
), looked_at AS (
    SELECT next_attempt FROM deliveries WHERE status = 'pending'
    ORDER BY origin, next_attempt, id LIMIT $1
)
SELECT count(*) AS pending,
    count(*) FILTER (WHERE next_attempt <= now()) AS due,
    coalesce(greatest(0, extract(epoch FROM now() - (SELECT min(next_attempt) FROM origins)) * 1000), 0)::bigint
        AS oldest
FROM looked_at";
