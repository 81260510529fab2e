//! The worker's statements. They are raw SQL because each acts on many rows of several tables in one
//! round trip (`unnest`, `LATERAL`, `SKIP LOCKED`, writing CTEs), which the DSL cannot say.
//!
//! Connections keep their plans, and [`CONNECTION`] settles what planning may choose from: a plan that was
//! made while the table was empty must be right for a million rows. So rows are named by `= ANY(array)` and
//! not by a join, `finished IS NULL`, which no index serves, stands for `status = 'pending'` wherever the rows
//! are named already, and what shall be found by an index is asked for in its order.

use std::time::Duration;

use chrono::{DateTime, Utc};
use database::prepared;
use diesel::sql_types::{Array, BigInt, Binary, Bool, Integer, Nullable, Text, Timestamptz};
use diesel::{PgConnection, QueryResult, QueryableByName, RunQueryDsl as _};
use messaging::Message;
use telemetry::RequestContext;
use values::{DeliveryId, WebhookId};

use crate::tasks::Task;

/// What a connection is told at its start.
pub(super) const CONNECTION: &str =
    "SET enable_seqscan = off; SET plan_cache_mode = force_generic_plan";

/// Claims are made one after the other, over all workers, so that they count each other's.
const CLAIM_LOCK: i64 = 0x7765_6268_6f6f_6b73;

/// What shall be claimed, and how much at the most.
#[derive(Debug, Clone)]
pub(super) struct Claim {
    /// Deliveries whose origins are looked at: wake-ups.
    pub(super) ids: Vec<DeliveryId>,
    /// Origins that are looked at.
    pub(super) origins: Vec<String>,
    /// Requests to one origin at a time, over all workers.
    pub(super) per_origin: u32,
    /// How many may be claimed by origins that have some already.
    pub(super) room: usize,
    /// How many may be claimed on top, by origins that have none: slow receivers never take it all.
    pub(super) reserve: usize,
    /// How long the claim lasts.
    pub(super) lease: Duration,
}

impl Claim {
    /// Whether there is nothing to look at.
    pub(super) fn is_empty(&self) -> bool {
        self.ids.is_empty() && self.origins.is_empty()
    }
}

/// A delivery that is ours until the lease ends.
#[derive(QueryableByName)]
pub(super) struct Claimed {
    #[diesel(sql_type = Binary)]
    pub(super) delivery_id: DeliveryId,
    #[diesel(sql_type = Binary)]
    pub(super) webhook_id: WebhookId,
    #[diesel(sql_type = BigInt)]
    pub(super) lease: i64,
    #[diesel(sql_type = Text)]
    pub(super) origin: String,
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

/// Claims deliveries that are due, the oldest of each origin first, and in turn among origins.
///
/// Only [`Claim::per_origin`] rows of an origin are ever leased, whoever leased them. Rows that somebody
/// else holds locked are left alone.
pub(super) fn claim(connection: &mut PgConnection, claim: &Claim) -> QueryResult<Vec<Claimed>> {
    prepared("SELECT pg_advisory_xact_lock($1)")
        .bind::<BigInt, _>(CLAIM_LOCK)
        .execute(connection)?;
    prepared(CLAIM)
        .bind::<Array<Binary>, _>(&claim.ids)
        .bind::<Array<Text>, _>(&claim.origins)
        .bind::<BigInt, _>(i64::from(claim.per_origin))
        .bind::<BigInt, _>(count(claim.room))
        .bind::<BigInt, _>(count(claim.room + claim.reserve))
        .bind::<BigInt, _>(milliseconds(claim.lease))
        .load(connection)
}

const CLAIM: &str = "
WITH wanted AS (
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
            AND candidate.next_attempt <= now() AND candidate.unanswered < 20
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
    UPDATE deliveries SET lease = lease + 1, unanswered = unanswered + 1, parked = false,
        lease_until = now() + $6 * interval '1 ms', wake_at = now() + $6 * interval '1 ms'
    WHERE id = ANY(ARRAY(SELECT id FROM free))
    RETURNING *
)
SELECT tasks.*, claimed.id AS delivery_id, claimed.webhook_id, claimed.lease, claimed.origin,
    claimed.attempts, claimed.request_id, claimed.traceparent, claimed.created AS decided,
    webhooks.url, webhooks.secret, webhooks.with_task_id
FROM claimed
JOIN webhooks ON webhooks.id = claimed.webhook_id
JOIN tasks ON tasks.id = claimed.task_id";

/// Takes those of these deliveries out of the sweeps that are still due and unclaimed after `overdue`.
pub(super) fn park(
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
struct RequestMeta {
    #[diesel(sql_type = Text)]
    origin: String,
    #[diesel(sql_type = Bool)]
    due: bool,
}

/// Where the next look at origins begins, in alphabetical order.
#[derive(Debug, Clone, Default)]
pub(super) struct Cursors {
    parked: String,
    pending: String,
}

/// Looks for origins that have deliveries to be claimed, `limit` of those that have parked ones and
/// `limit` of all, and moves the cursors. Each origin is found by one step in an index, however many
/// deliveries it has.
pub(super) fn look_around(
    connection: &mut PgConnection,
    cursors: &mut Cursors,
    limit: i64,
) -> QueryResult<Vec<String>> {
    let mut found = next_origins(connection, PARKED_ORIGINS, &mut cursors.parked, limit)?;
    found.extend(next_origins(
        connection,
        PENDING_ORIGINS,
        &mut cursors.pending,
        limit,
    )?);
    Ok(found)
}

fn next_origins(
    connection: &mut PgConnection,
    statement: &'static str,
    cursor: &mut String,
    limit: i64,
) -> QueryResult<Vec<String>> {
    let origins: Vec<RequestMeta> = prepared(statement)
        .bind::<Text, _>(&*cursor)
        .bind::<BigInt, _>(limit)
        .load(connection)?;
    let last = origins.last().filter(|_| count(origins.len()) >= limit);
    *cursor = last.map(|row| row.origin.clone()).unwrap_or_default();
    let due = origins.into_iter().filter(|row| row.due);
    Ok(due.map(|row| row.origin).collect())
}

const PARKED_ORIGINS: &str = "
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

const PENDING_ORIGINS: &str = "
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

/// What a sweep found.
#[derive(Debug)]
pub(super) struct Swept {
    /// How many deliveries.
    pub(super) found: usize,
    /// Those whose origin has room.
    pub(super) messages: Vec<Message>,
}

/// Takes deliveries that are due and that no message may be under way for. Those whose origin has all
/// the requests that it may have are parked; the others are left alone for `quiet` after this.
pub(super) fn sweep(
    connection: &mut PgConnection,
    limit: i64,
    quiet: Duration,
    per_origin: u32,
) -> QueryResult<Swept> {
    let due: Vec<Due> = prepared(SWEEP)
        .bind::<BigInt, _>(limit)
        .bind::<BigInt, _>(milliseconds(quiet))
        .bind::<BigInt, _>(i64::from(per_origin))
        .load(connection)?;
    let found = due.len();
    let with_room = due.into_iter().filter(|row| !row.parked);
    let messages = with_room.map(|row| {
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
    SELECT id, origin FROM deliveries WHERE status = 'pending' AND NOT parked AND wake_at <= now()
    ORDER BY wake_at LIMIT $1 FOR NO KEY UPDATE SKIP LOCKED
), full_origins AS (
    SELECT origin FROM (SELECT DISTINCT origin FROM due) AS origins
    WHERE $3 <= (SELECT count(*) FROM (
        SELECT FROM deliveries AS leased
        WHERE leased.origin = origins.origin AND leased.status = 'pending'
            AND leased.lease_until > now()
        ORDER BY leased.lease_until LIMIT $3) AS leased)
)
UPDATE deliveries SET wake_at = now() + $2 * interval '1 ms',
    parked = origin = ANY(ARRAY(SELECT origin FROM full_origins))
WHERE id = ANY(ARRAY(SELECT id FROM due))
RETURNING id, request_id, traceparent, parked";

/// Gives up deliveries that were claimed twenty times in a row without a result: whatever they do to a
/// worker, they shall not do it for ever. Returns how many, at most `limit`.
pub(super) fn give_up(connection: &mut PgConnection, limit: i64) -> QueryResult<usize> {
    prepared(GIVE_UP)
        .bind::<BigInt, _>(limit)
        .execute(connection)
}

const GIVE_UP: &str = "
WITH lost AS (
    SELECT id, webhook_id FROM deliveries
    WHERE status = 'pending' AND unanswered >= 20 AND lease_until <= now()
    ORDER BY lease_until LIMIT $1 FOR NO KEY UPDATE SKIP LOCKED
), told AS (
    UPDATE webhooks SET status = 'fail' WHERE id = ANY(ARRAY(SELECT webhook_id FROM lost))
), explained AS (
    INSERT INTO delivery_attempts (delivery_id, number, at, duration_ms, error)
    SELECT id,
        1 + coalesce((SELECT max(number) FROM delivery_attempts WHERE delivery_id = lost.id), 0),
        now(), 0, 'given up: 20 attempts in a row were begun and never ended'
    FROM lost
)
UPDATE deliveries SET status = 'fail', finished = now(), lease_until = NULL, parked = false
WHERE id = ANY(ARRAY(SELECT id FROM lost))";

/// Deletes deliveries that finished longer ago than `retention`, at most `limit`, with their attempts.
pub(super) fn purge(
    connection: &mut PgConnection,
    retention: Duration,
    limit: i64,
) -> QueryResult<usize> {
    prepared(
        "DELETE FROM deliveries WHERE id = ANY(ARRAY(
            SELECT id FROM deliveries WHERE finished < now() - $1 * interval '1 ms'
            ORDER BY finished LIMIT $2 FOR UPDATE SKIP LOCKED))",
    )
    .bind::<BigInt, _>(milliseconds(retention))
    .bind::<BigInt, _>(limit)
    .execute(connection)
}

pub(super) fn milliseconds(duration: Duration) -> i64 {
    i64::try_from(duration.as_millis()).unwrap_or(i64::MAX)
}

fn count(number: usize) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}
