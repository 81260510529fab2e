//! How results are written; raw SQL for the reasons that [`store`](super::store) gives.

use std::time::Duration;

use chrono::{DateTime, Utc};
use database::prepared;
use diesel::sql_types::{Array, BigInt, Binary, Bool, Integer, Nullable, Text, Timestamptz};
use diesel::{PgConnection, QueryResult, QueryableByName, RunQueryDsl as _};
use values::{DeliveryId, WebhookId};

use crate::deliveries::worker::attempt::Finished;
use crate::deliveries::worker::schedule::Verdict;
use crate::deliveries::worker::store::milliseconds;
use crate::status::DeliveryStatus;

/// What became of a result that was to be written.
#[derive(Debug, QueryableByName)]
pub(super) struct Written {
    #[diesel(sql_type = Binary)]
    pub(super) delivery_id: DeliveryId,
    /// It is written.
    #[diesel(sql_type = Bool)]
    pub(super) written: bool,
    /// The delivery still waits for it. When it is not written either, somebody held the row locked.
    #[diesel(sql_type = Bool)]
    pub(super) ours: bool,
}

/// Writes results: the deliveries, their webhooks, the attempts. A result whose lease was lost, or whose
/// delivery is gone, changes nothing. Rows that somebody else holds locked are left for later, so this
/// neither waits for the deletion of a task nor gets into a deadlock with it.
pub(super) fn write(
    connection: &mut PgConnection,
    results: &[Finished],
) -> QueryResult<Vec<Written>> {
    let column = Columns::of(results);
    prepared(WRITE)
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
        .load(connection)
}

const WRITE: &str = "
WITH result AS (
    SELECT * FROM unnest($1, $2, $3, $4, $5, $6, $7, $8, $9, $10) AS result (
        id, lease, webhook_id, status, pause, at, duration_ms, status_code, error, response)
), webhook AS (
    SELECT id FROM webhooks WHERE id = ANY($3) FOR NO KEY UPDATE SKIP LOCKED
), free AS (
    SELECT id, webhook_id, lease FROM deliveries WHERE id = ANY($1) AND finished IS NULL
    FOR NO KEY UPDATE SKIP LOCKED
), held AS (
    SELECT result.* FROM result JOIN free USING (id, lease)
    WHERE free.webhook_id IN (SELECT id FROM webhook)
), written AS (
    UPDATE deliveries SET status = held.status, attempts = deliveries.attempts + 1,
        lease_until = NULL, unanswered = 0,
        next_attempt = CASE WHEN held.status = 'pending'
            THEN now() + held.pause * interval '1 ms' ELSE deliveries.next_attempt END,
        wake_at = now() + held.pause * interval '1 ms',
        finished = CASE WHEN held.status = 'pending' THEN NULL ELSE now() END
    FROM held
    WHERE deliveries.id = held.id AND deliveries.id = ANY($1)
), followed AS (
    UPDATE webhooks SET status = held.status FROM held
    WHERE webhooks.id = held.webhook_id AND webhooks.id = ANY($3) AND webhooks.status <> held.status
), recorded AS (
    INSERT INTO delivery_attempts
        (delivery_id, number, at, duration_ms, status_code, error, response)
    SELECT id,
        1 + coalesce((SELECT max(number) FROM delivery_attempts WHERE delivery_id = held.id), 0),
        at, duration_ms, status_code, error, response
    FROM held
)
SELECT result.id AS delivery_id, held.id IS NOT NULL AS written,
    EXISTS (SELECT FROM deliveries WHERE deliveries.id = result.id
        AND deliveries.lease = result.lease AND finished IS NULL) AS ours
FROM result LEFT JOIN held ON held.id = result.id";

/// Results turned into columns.
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
}

impl<'a> Columns<'a> {
    fn of(results: &'a [Finished]) -> Self {
        let mut columns = Self::default();
        for result in results {
            let (status, pause) = match result.verdict {
                Verdict::Sent => (DeliveryStatus::Sent, Duration::ZERO),
                Verdict::Fail => (DeliveryStatus::Fail, Duration::ZERO),
                Verdict::Retry(pause) => (DeliveryStatus::Pending, pause),
            };
            columns.ids.push(result.held.delivery);
            columns.leases.push(result.held.lease);
            columns.webhooks.push(result.held.webhook);
            columns.statuses.push(status.as_str());
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
