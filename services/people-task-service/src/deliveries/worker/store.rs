//! The worker's statements. They are raw SQL because each acts on many rows of several tables in one round
//! trip (`unnest`, `LATERAL`, `SKIP LOCKED`, writing CTEs), which diesel's query builder cannot express.
//!
//! Connections cache their plans, and [`POOL_OPTIONS`] limits the planner's choices: a plan that was made
//! while the table was empty must suit a million rows. So statements name rows by `= ANY(array)` and not by a
//! join, use `finished IS NULL`, which no index serves, for `status = 'pending'` where the rows are already
//! named, and order rows by the index that should find them.

use std::time::Duration;

use chrono::{DateTime, Utc};
use database::{PoolOptions, StatementLimits, prepared};
use diesel::sql_types::{Array, BigInt, Binary, Bool, Integer, Nullable, Text, Timestamptz};
use diesel::{PgConnection, QueryResult, QueryableByName, RunQueryDsl as _};
use messaging::Message;
use telemetry::RequestContext;
use values::{DeliveryId, WebhookId};

use crate::tasks::{Task, task_columns};

pub(super) const POOL_OPTIONS: PoolOptions = PoolOptions {
    limits: StatementLimits::WORKER,
    on_connect: "SET enable_seqscan = off; SET plan_cache_mode = force_generic_plan",
};

/// The advisory lock under which all workers claim, one after the other, so that limits hold over all of them.
const CLAIM_LOCK: i64 = 0x7765_6268_6f6f_6b73;

/// Which deliveries to claim, and how many.
#[derive(Debug, Clone)]
pub(super) struct Claim {
    /// Deliveries from messages. Their hosts are considered.
    pub(super) ids: Vec<DeliveryId>,
    /// More hosts to consider.
    pub(super) hosts: Vec<String>,
    /// The number of concurrent requests to one host, over all workers.
    pub(super) per_host: u32,
    /// How many deliveries to claim.
    pub(super) capacity: usize,
    /// How many more to claim for hosts that have no request: slow receivers never take all capacity.
    pub(super) reserved: usize,
    /// How long the lease lasts.
    pub(super) lease: Duration,
}

impl Claim {
    /// Whether there is no host to consider.
    pub(super) fn is_empty(&self) -> bool {
        self.ids.is_empty() && self.hosts.is_empty()
    }
}

/// A delivery that this worker has claimed, until its lease ends.
#[derive(QueryableByName)]
pub(super) struct ClaimedDelivery {
    #[diesel(sql_type = Binary)]
    pub(super) delivery_id: DeliveryId,
    #[diesel(sql_type = Binary)]
    pub(super) webhook_id: WebhookId,
    #[diesel(sql_type = BigInt)]
    pub(super) lease: i64,
    #[diesel(sql_type = Text, column_name = "origin")]
    pub(super) host: String,
    #[diesel(sql_type = Integer)]
    pub(super) attempts: i32,
    #[diesel(sql_type = Text)]
    pub(super) request_id: String,
    #[diesel(sql_type = Text)]
    pub(super) traceparent: String,
    #[diesel(sql_type = Timestamptz)]
    pub(super) decided: DateTime<Utc>,
    #[diesel(sql_type = Text)]
    pub(super) url: String,
    #[diesel(sql_type = Nullable<Text>)]
    pub(super) secret: Option<String>,
    #[diesel(sql_type = Bool)]
    pub(super) with_task_id: bool,
    #[diesel(embed)]
    pub(super) task: Task,
}

/// Claims due deliveries, the oldest of each host first, with the hosts taking turns.
///
/// A host never has more than [`Claim::per_host`] leases over all workers. Locked rows are skipped.
pub(super) fn claim(
    connection: &mut PgConnection,
    claim: &Claim,
) -> QueryResult<Vec<ClaimedDelivery>> {
    prepared("SELECT pg_advisory_xact_lock($1)")
        .bind::<BigInt, _>(CLAIM_LOCK)
        .execute(connection)?;
    prepared(CLAIM)
        .bind::<Array<Binary>, _>(&claim.ids)
        .bind::<Array<Text>, _>(&claim.hosts)
        .bind::<BigInt, _>(i64::from(claim.per_host))
        .bind::<BigInt, _>(count(claim.capacity))
        .bind::<BigInt, _>(count(claim.capacity + claim.reserved))
        .bind::<BigInt, _>(milliseconds(claim.lease))
        .load(connection)
}

const CLAIM: &str = concat!(
    "WITH wanted AS (
    SELECT origin FROM deliveries WHERE id = ANY($1) AND finished IS NULL
    UNION
    SELECT unnest($2)
), origins AS MATERIALIZED (
    SELECT wanted.origin, (
        SELECT count(*) FROM (
            SELECT FROM deliveries AS leased
            WHERE leased.origin = wanted.origin AND leased.status = 'pending'
                AND leased.lease_until > now()
            ORDER BY leased.lease_until LIMIT $3
        ) AS leased
    ) AS taken
    FROM wanted
), due AS (
    SELECT next.id,
        taken + row_number() OVER (PARTITION BY origin ORDER BY next.next_attempt, next.id) AS place
    FROM origins CROSS JOIN LATERAL (
        SELECT id, next_attempt FROM deliveries AS candidate
        WHERE candidate.origin = origins.origin AND candidate.status = 'pending'
            AND candidate.next_attempt <= now() AND candidate.claims_without_result < 20
            AND (candidate.lease_until IS NULL OR candidate.lease_until <= now())
        ORDER BY candidate.next_attempt, candidate.id
        LIMIT $3
    ) AS next
    WHERE origins.taken < $3
), ranked AS (
    SELECT id, place, row_number() OVER (ORDER BY place) AS rank FROM due WHERE place <= $3
), free AS (
    SELECT id FROM deliveries
    WHERE id = ANY(ARRAY(SELECT id FROM ranked WHERE rank <= $4 OR place = 1 AND rank <= $5))
        AND finished IS NULL AND next_attempt <= now()
        AND (lease_until IS NULL OR lease_until <= now())
    FOR NO KEY UPDATE SKIP LOCKED
), claimed AS (
    UPDATE deliveries SET lease = lease + 1, claims_without_result = claims_without_result + 1, parked = false,
        lease_until = now() + $6 * interval '1 ms', republish_at = now() + $6 * interval '1 ms'
    WHERE id = ANY(ARRAY(SELECT id FROM free))
    RETURNING *
)
SELECT ",
    task_columns!("tasks"),
    ", claimed.id AS delivery_id, claimed.webhook_id, claimed.lease, claimed.origin,
    claimed.attempts, claimed.request_id, claimed.traceparent, claimed.created AS decided,
    webhooks.url, webhooks.secret, webhooks.with_task_id
FROM claimed
JOIN webhooks ON webhooks.id = claimed.webhook_id
JOIN tasks ON tasks.id = claimed.task_id"
);

/// Parks those of these deliveries that have been due and unclaimed for `overdue`: sweeps skip them.
pub(super) fn park_overdue(
    connection: &mut PgConnection,
    ids: &[DeliveryId],
    overdue: Duration,
) -> QueryResult<usize> {
    if ids.is_empty() {
        return Ok(0);
    }
    prepared(
        "UPDATE deliveries SET parked = true WHERE id = ANY(ARRAY(
            SELECT id FROM deliveries
            WHERE id = ANY($1) AND finished IS NULL AND NOT parked
                AND next_attempt <= now() - $2 * interval '1 ms'
                AND (lease_until IS NULL OR lease_until <= now())
            FOR NO KEY UPDATE SKIP LOCKED))",
    )
    .bind::<Array<Binary>, _>(ids)
    .bind::<BigInt, _>(milliseconds(overdue))
    .execute(connection)
}

#[derive(QueryableByName)]
struct HostRow {
    #[diesel(sql_type = Text, column_name = "origin")]
    host: String,
    #[diesel(sql_type = Bool)]
    due: bool,
}

/// Where the next scan of hosts starts, in alphabetical order.
#[derive(Debug, Clone, Default)]
pub(super) struct Cursors {
    parked: String,
    pending: String,
}

/// Finds hosts with due deliveries, in the next `limit` hosts with parked deliveries and the next `limit`
/// with pending ones, and moves the cursors. Each host takes one step in an index, however many deliveries
/// it has.
pub(super) fn scan_due(
    connection: &mut PgConnection,
    cursors: &mut Cursors,
    limit: i64,
) -> QueryResult<Vec<String>> {
    let mut found = next_hosts(connection, PARKED_HOSTS, &mut cursors.parked, limit)?;
    found.extend(next_hosts(
        connection,
        PENDING_HOSTS,
        &mut cursors.pending,
        limit,
    )?);
    Ok(found)
}

fn next_hosts(
    connection: &mut PgConnection,
    statement: &'static str,
    cursor: &mut String,
    limit: i64,
) -> QueryResult<Vec<String>> {
    let hosts: Vec<HostRow> = prepared(statement)
        .bind::<Text, _>(&*cursor)
        .bind::<BigInt, _>(limit)
        .load(connection)?;
    let last = hosts.last().filter(|_| count(hosts.len()) >= limit);
    *cursor = last.map(|row| row.host.clone()).unwrap_or_default();
    let due = hosts.into_iter().filter(|row| row.due);
    Ok(due.map(|row| row.host).collect())
}

const PARKED_HOSTS: &str = "
WITH RECURSIVE step AS (
    (SELECT origin FROM deliveries WHERE status = 'pending' AND parked AND origin > $1
     ORDER BY origin LIMIT 1)
    UNION ALL
    SELECT following.origin FROM step CROSS JOIN LATERAL (
        SELECT origin FROM deliveries
        WHERE status = 'pending' AND parked AND deliveries.origin > step.origin
        ORDER BY origin LIMIT 1
    ) AS following
)
SELECT origin, true AS due FROM step LIMIT $2";

const PENDING_HOSTS: &str = "
WITH RECURSIVE step AS (
    (SELECT origin, next_attempt FROM deliveries WHERE status = 'pending' AND origin > $1
     ORDER BY origin, next_attempt, id LIMIT 1)
    UNION ALL
    SELECT following.origin, following.next_attempt FROM step CROSS JOIN LATERAL (
        SELECT origin, next_attempt FROM deliveries
        WHERE status = 'pending' AND deliveries.origin > step.origin
        ORDER BY origin, next_attempt, id LIMIT 1
    ) AS following
)
SELECT origin, next_attempt <= now() AS due FROM step LIMIT $2";

#[derive(QueryableByName)]
struct Due {
    #[diesel(sql_type = Binary)]
    id: DeliveryId,
    #[diesel(sql_type = Text)]
    request_id: String,
    #[diesel(sql_type = Text)]
    traceparent: String,
    #[diesel(sql_type = Bool)]
    parked: bool,
}

/// The result of a sweep.
#[derive(Debug)]
pub(super) struct Swept {
    /// The number of deliveries.
    pub(super) found: usize,
    /// Messages for those whose host is below its limit.
    pub(super) messages: Vec<Message>,
}

/// Takes due deliveries that have no message in flight. It parks those whose host is at its limit; sweeps
/// skip the others for `republish_after`.
pub(super) fn sweep(
    connection: &mut PgConnection,
    limit: i64,
    republish_after: Duration,
    per_host: u32,
) -> QueryResult<Swept> {
    let due: Vec<Due> = prepared(SWEEP)
        .bind::<BigInt, _>(limit)
        .bind::<BigInt, _>(milliseconds(republish_after))
        .bind::<BigInt, _>(i64::from(per_host))
        .load(connection)?;
    let found = due.len();
    let unparked = due.into_iter().filter(|row| !row.parked);
    let messages = unparked.map(|row| {
        let context = RequestContext::continued(Some(&row.request_id), Some(&row.traceparent));
        Message::new(row.id, context)
    });
    Ok(Swept {
        found,
        messages: messages.collect(),
    })
}

const SWEEP: &str = "
WITH due AS (
    SELECT id, origin FROM deliveries WHERE status = 'pending' AND NOT parked AND republish_at <= now()
    ORDER BY republish_at LIMIT $1 FOR NO KEY UPDATE SKIP LOCKED
), full_origins AS (
    SELECT origin FROM (SELECT DISTINCT origin FROM due) AS origins
    WHERE $3 <= (SELECT count(*) FROM (
        SELECT FROM deliveries AS leased
        WHERE leased.origin = origins.origin AND leased.status = 'pending'
            AND leased.lease_until > now()
        ORDER BY leased.lease_until LIMIT $3) AS leased)
)
UPDATE deliveries SET republish_at = now() + $2 * interval '1 ms',
    parked = origin = ANY(ARRAY(SELECT origin FROM full_origins))
WHERE id = ANY(ARRAY(SELECT id FROM due))
RETURNING id, request_id, traceparent, parked";

/// Gives up at most `limit` deliveries that were claimed twenty times in a row without a result, because
/// they may crash workers. Returns their number.
pub(super) fn give_up(connection: &mut PgConnection, limit: i64) -> QueryResult<usize> {
    prepared(GIVE_UP)
        .bind::<BigInt, _>(limit)
        .execute(connection)
}

const GIVE_UP: &str = "
WITH lost AS (
    SELECT id, webhook_id FROM deliveries
    WHERE status = 'pending' AND claims_without_result >= 20 AND lease_until <= now()
    ORDER BY lease_until LIMIT $1 FOR NO KEY UPDATE SKIP LOCKED
), failed AS (
    UPDATE webhooks SET status = 'fail' WHERE id = ANY(ARRAY(SELECT webhook_id FROM lost))
), recorded AS (
    INSERT INTO delivery_attempts (delivery_id, number, at, duration_ms, error)
    SELECT id,
        1 + coalesce((SELECT max(number) FROM delivery_attempts WHERE delivery_id = lost.id), 0),
        now(), 0, 'given up: 20 attempts in a row started and never finished'
    FROM lost
)
UPDATE deliveries SET status = 'fail', finished = now(), lease_until = NULL, parked = false
WHERE id = ANY(ARRAY(SELECT id FROM lost))";

pub(super) fn milliseconds(duration: Duration) -> i64 {
    i64::try_from(duration.as_millis()).unwrap_or(i64::MAX)
}

fn count(number: usize) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}
