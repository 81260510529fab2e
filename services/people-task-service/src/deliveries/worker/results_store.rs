//! The statement that records results. It is raw SQL for the reasons that [`store`](super::store) gives.

use std::time::Duration;

use chrono::{DateTime, Utc};
use database::prepared;
use diesel::sql_types::{Array, BigInt, Binary, Bool, Integer, Nullable, Text, Timestamptz};
use diesel::{PgConnection, QueryResult, QueryableByName, RunQueryDsl as _};
use values::{DeliveryId, Names as _, WebhookId};

use crate::deliveries::worker::attempt::AttemptResult;
use crate::deliveries::worker::schedule::RetryDecision;
use crate::deliveries::worker::store::milliseconds;
use crate::status::DeliveryStatus;

/// Whether a result was recorded.
#[derive(Debug, QueryableByName)]
pub(super) struct RecordedResult {
    #[diesel(sql_type = Binary)]
    pub(super) delivery_id: DeliveryId,
    #[diesel(sql_type = Bool)]
    pub(super) recorded: bool,
    /// The lease still holds. A result that is leased and not recorded met a locked row.
    #[diesel(sql_type = Bool)]
    pub(super) leased: bool,
}

/// Records results in deliveries, webhooks and attempts. A result changes nothing if its lease is lost or its
/// delivery deleted. Locked rows are skipped, so this neither waits for the deletion of a task nor deadlocks
/// with it.
pub(super) fn record_results(
    connection: &mut PgConnection,
    results: &[AttemptResult],
) -> QueryResult<Vec<RecordedResult>> {
    let column = Columns::of(results);
    prepared(RECORD_RESULTS)
        .bind::<Array<Binary>, _>(column.ids)
        .bind::<Array<BigInt>, _>(column.leases)
        .bind::<Array<Binary>, _>(column.webhooks)
        .bind::<Array<Text>, _>(column.statuses)
        .bind::<Array<BigInt>, _>(column.pauses)
        .bind::<Array<Timestamptz>, _>(column.ats)
        .bind::<Array<Integer>, _>(column.durations)
        .bind::<Array<Nullable<Integer>>, _>(column.codes)
        .bind::<Array<Nullable<Text>>, _>(column.errors)
        .bind::<Array<Nullable<Text>>, _>(column.responses)
        .bind::<Array<Bool>, _>(column.attempted)
        .load(connection)
}

const RECORD_RESULTS: &str = "
WITH result AS (
    SELECT * FROM unnest($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11) AS result (
        id, lease, webhook_id, status, pause, at, duration_ms, status_code, error, response,
        attempted)
), webhook AS (
    SELECT id FROM webhooks WHERE id = ANY($3) FOR NO KEY UPDATE SKIP LOCKED
), free AS (
    SELECT id, webhook_id, lease FROM deliveries WHERE id = ANY($1) AND finished IS NULL
    FOR NO KEY UPDATE SKIP LOCKED
), accepted AS (
    SELECT result.* FROM result JOIN free USING (id, lease)
    WHERE free.webhook_id IN (SELECT id FROM webhook)
), updated AS (
    UPDATE deliveries SET status = accepted.status, attempts = deliveries.attempts + accepted.attempted::int,
        lease_until = NULL, claims_without_result = 0,
        next_attempt = CASE WHEN accepted.status = 'pending'
            THEN now() + accepted.pause * interval '1 ms' ELSE deliveries.next_attempt END,
        republish_at = now() + accepted.pause * interval '1 ms',
        finished = CASE WHEN accepted.status = 'pending' THEN NULL ELSE now() END
    FROM accepted
    WHERE deliveries.id = accepted.id AND deliveries.id = ANY($1)
), followed AS (
    UPDATE webhooks SET status = accepted.status FROM accepted
    WHERE webhooks.id = accepted.webhook_id AND webhooks.id = ANY($3) AND webhooks.status <> accepted.status
), inserted AS (
    INSERT INTO delivery_attempts
        (delivery_id, number, at, duration_ms, status_code, error, response)
    SELECT id,
        1 + coalesce((SELECT max(number) FROM delivery_attempts WHERE delivery_id = accepted.id), 0),
        at, duration_ms, status_code, error, response
    FROM accepted WHERE attempted
)
SELECT result.id AS delivery_id, accepted.id IS NOT NULL AS recorded,
    EXISTS (SELECT FROM deliveries WHERE deliveries.id = result.id
        AND deliveries.lease = result.lease AND finished IS NULL) AS leased
FROM result LEFT JOIN accepted ON accepted.id = result.id";

/// The columns of results.
#[derive(Default)]
struct Columns<'a> {
    ids: Vec<DeliveryId>,
    leases: Vec<i64>,
    webhooks: Vec<WebhookId>,
    statuses: Vec<&'static str>,
    pauses: Vec<i64>,
    ats: Vec<DateTime<Utc>>,
    durations: Vec<i32>,
    codes: Vec<Option<i32>>,
    errors: Vec<Option<&'a str>>,
    responses: Vec<Option<&'a str>>,
    /// Whether it was an attempt, which is counted and listed.
    attempted: Vec<bool>,
}

impl<'a> Columns<'a> {
    fn of(results: &'a [AttemptResult]) -> Self {
        let mut columns = Self::default();
        for result in results {
            let (status, pause) = match result.decision {
                RetryDecision::Sent => (DeliveryStatus::Sent, Duration::ZERO),
                RetryDecision::Fail => (DeliveryStatus::Fail, Duration::ZERO),
                RetryDecision::Retry(pause) | RetryDecision::Postpone(pause) => {
                    (DeliveryStatus::Pending, pause)
                }
            };
            let postponed = matches!(result.decision, RetryDecision::Postpone(_));
            columns.attempted.push(!postponed);
            columns.ids.push(result.lease.delivery);
            columns.leases.push(result.lease.number);
            columns.webhooks.push(result.lease.webhook);
            columns.statuses.push(status.name());
            columns.pauses.push(milliseconds(pause));
            columns.ats.push(result.at);
            let duration = i32::try_from(result.duration.as_millis());
            columns.durations.push(duration.unwrap_or(i32::MAX));
            columns.codes.push(result.status_code.map(i32::from));
            columns.errors.push(result.error.as_deref());
            columns.responses.push(result.response.as_deref());
        }
        columns
    }
}
