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

/// Reads the backlog. It looks for due deliveries of at most 10,000 hosts.
pub(crate) fn load_backlog(connection: &mut PgConnection) -> Result<Backlog, Error> {
    load_up_to(connection, MAX_COUNTED)
}

fn load_up_to(connection: &mut PgConnection, limit: i64) -> Result<Backlog, Error> {
    let backlog =
        prepared(BACKLOG)
            .bind::<BigInt, _>(limit)
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
    SELECT host, next_attempt FROM (SELECT * FROM step LIMIT 10000) AS first
    WHERE host NOT IN (SELECT host FROM paused_hosts)
), due_hosts AS (
    SELECT host FROM hosts WHERE next_attempt <= now()
), parked AS (
    SELECT host, next_attempt FROM deliveries WHERE lost_claims >= 2 AND lost_trials >= 5
    UNION ALL
    SELECT host, next_attempt FROM deliveries WHERE option_claims >= 2 AND lost_trials >= 5
), parked_due AS (
    SELECT count(*) AS number FROM parked WHERE next_attempt <= now() AND host IN (SELECT host FROM due_hosts)
)
SELECT
    (SELECT count(*) FROM (SELECT FROM deliveries ORDER BY host, next_attempt LIMIT $1) AS counted) AS pending,
    -- An index has all that the first count reads, and a small one the few parked deliveries among them.
    least($1, (SELECT count(*) FROM (
        SELECT FROM due_hosts CROSS JOIN LATERAL (
            SELECT FROM deliveries WHERE deliveries.host = due_hosts.host AND next_attempt <= now()
            ORDER BY next_attempt LIMIT $1 + (SELECT number FROM parked_due)
        ) AS first LIMIT $1 + (SELECT number FROM parked_due)
    ) AS ready) - (SELECT number FROM parked_due)) AS due,
    coalesce(greatest(0, extract(epoch FROM now() - (SELECT min(next_attempt) FROM hosts)) * 1000), 0)::bigint
        / 1000::double precision AS oldest_due_seconds,
    (SELECT count(*) FROM parked) AS parked,
    (SELECT count(*) FROM (
        SELECT FROM paused_hosts CROSS JOIN LATERAL (
            SELECT FROM deliveries WHERE deliveries.host = paused_hosts.host ORDER BY next_attempt LIMIT $1
        ) AS waiting LIMIT $1
    ) AS held) AS paused,
    (SELECT count(*) FROM paused_hosts) AS paused_hosts";

#[cfg(test)]
mod tests {
    use diesel::connection::SimpleConnection as _;
    use testkit::TestDatabase;

    use super::load_up_to;

    /// Deliveries to `a` that wait longer, and to others that are due, two of which are parked.
    const FILL: &str = "
        SET search_path = people_task;
        CREATE TEMPORARY TABLE made AS
            SELECT substr(sha256(n::text::bytea), 1, 12) AS id, n FROM generate_series(1, 20) AS n;
        INSERT INTO deliveries (id, webhook_id, task_id, host, request_id, traceparent, next_attempt)
        SELECT id, id, id,
            CASE WHEN n <= 10 THEN 'a' WHEN n <= 14 THEN 'b' WHEN n <= 16 THEN 'c' ELSE 'paused' END, 'r', 't',
            now() + CASE WHEN n <= 10 THEN interval '1 hour' ELSE interval '-1 minute' END FROM made;
        UPDATE deliveries SET lost_claims = 2, lost_trials = 5 FROM made
            WHERE deliveries.id = made.id AND n IN (11, 17);
        INSERT INTO paused_hosts (host) VALUES ('paused');";

    #[test]
    fn due_deliveries_are_counted_beside_many_that_wait_longer() {
        let database = TestDatabase::people_task(crate::MIGRATIONS);
        database.admin().batch_execute(FILL).unwrap();
        let mut connection = database.people_task_connection();
        for (limit, pending, due) in [(100, 20, 5), (10, 10, 5), (2, 2, 2)] {
            let backlog = load_up_to(&mut connection, limit).unwrap();
            assert_eq!((backlog.pending, backlog.due), (pending, due), "{limit}");
            assert_eq!((backlog.parked, backlog.paused_hosts), (2, 1));
            assert!(backlog.oldest_due_seconds >= 60.0);
        }
    }
}
