//! The statement that records results. It is raw SQL for the reasons that [`due_store`](super::due_store) gives.

use std::collections::HashMap;
use std::time::Duration;

use database::{Error, column, prepared};
use diesel::sql_types::{Array, BigInt, Binary, Bool, Integer, Jsonb, Nullable, Text, Timestamptz};
use diesel::{PgConnection, RunQueryDsl as _};
use serde_json::{Value, json};
use values::{DeliveryId, Names as _, UserId};

use crate::deliveries::worker::attempt::AttemptResult;
use crate::deliveries::worker::schedule::RetryDecision;
use crate::status::DeliveryStatus;

impl AttemptResult {
    /// The worker without whose row it changes nothing, because the delivery may be another one's by now. A success counts,
    /// whoever sent it.
    fn depends_on(&self) -> Option<i32> {
        let worker = self.lease.worker;
        worker.filter(|_| self.decision != RetryDecision::Sent)
    }

    /// The status and the pause of the delivery, an array of its attempt, or of none, and who has no right to the task, so
    /// that it waits.
    fn outcome(&self) -> (DeliveryStatus, i64, Value, Option<UserId>) {
        let (pending, no_attempt) = (DeliveryStatus::Pending, json!([]));
        let (log, registrant) = (json!([self.attempt]), Some(self.lease.registrant));
        match self.decision {
            RetryDecision::Sent => (DeliveryStatus::Sent, 0, log, None),
            RetryDecision::Fail => (DeliveryStatus::Fail, 0, log, None),
            RetryDecision::Retry(pause) => (pending, milliseconds(pause), log, None),
            RetryDecision::Postpone(pause) => (pending, milliseconds(pause), no_attempt, None),
            RetryDecision::Suspend(pause) => (pending, milliseconds(pause), no_attempt, registrant),
            RetryDecision::NotSent => (pending, UNCHANGED, no_attempt, None),
        }
    }
}

/// What became of ends: `true` if one was recorded, `false` if its row was locked, `None` if its worker was taken for dead.
/// Those of deliveries that have changed or are deleted are missing.
pub(super) type Recorded = HashMap<DeliveryId, Option<bool>>;

/// Records the ends of deliveries: finished ones move to `finished_deliveries`, the others wait again. An end changes
/// nothing if the row is of another version than the one that was loaded, or deleted. Locked rows are skipped, so this
/// neither waits for the deletion of a task nor deadlocks with it.
pub(super) fn record_ends(
    connection: &mut PgConnection,
    ends: &[AttemptResult],
) -> Result<Recorded, Error> {
    let outcomes = column(ends, AttemptResult::outcome);
    let found: Vec<(DeliveryId, Option<bool>)> = prepared(RECORD_ENDS)
        .bind::<Array<Binary>, _>(column(ends, |end| end.lease.delivery))
        .bind::<Array<Integer>, _>(column(ends, |end| end.lease.version))
        .bind::<Array<Binary>, _>(column(ends, |end| end.lease.webhook))
        .bind::<Array<Text>, _>(column(&outcomes, |(status, ..)| status.name()))
        .bind::<Array<BigInt>, _>(column(&outcomes, |(_, pause, ..)| *pause))
        .bind::<Array<Jsonb>, _>(column(&outcomes, |(_, _, log, _)| log))
        .bind::<Array<Nullable<Binary>>, _>(column(&outcomes, |(.., registrant)| *registrant))
        .bind::<Array<Timestamptz>, _>(column(ends, |end| end.lease.next_attempt))
        .bind::<Array<Nullable<Integer>>, _>(column(ends, AttemptResult::depends_on))
        .returning::<(Binary, Nullable<Bool>)>()
        .load(connection)?;
    Ok(found.into_iter().collect())
}

// The API shows the newest 100 attempts, and the status of a webhook is about its newest event. A delivery that was
// redelivered during a failed attempt, which was judged by the schedule before, stays due. No two of the named queries are
// joined, which would take quadratic time.
//
// Another worker takes the shards of one that was taken for dead once it has deleted its row. The lock of that row makes it
// wait for what is recorded here.
const RECORD_ENDS: &str = "
WITH alive AS (
    SELECT id FROM delivery_workers WHERE id = ANY($9) FOR KEY SHARE
), given AS (
    SELECT *, worker IS NULL OR worker IN (SELECT id FROM alive) AS counts
    FROM unnest($1, $2, $3, $4, $5, $6, $7, $8, $9) AS given (
        id, lease, webhook_id, status, pause, log, suspended_for, next_attempt, worker)
), webhook AS (
    SELECT id FROM webhooks WHERE id = ANY($3) FOR NO KEY UPDATE SKIP LOCKED
), accepted AS (
    SELECT given.id, log, given.suspended_for,
        CASE WHEN is_restarted THEN 'pending' ELSE status END AS status, CASE WHEN is_restarted THEN 0 ELSE pause END AS pause
    FROM given JOIN deliveries ON deliveries.id = ANY(ARRAY[given.id]) AND deliveries.lease = given.lease
        CROSS JOIN LATERAL (SELECT deliveries.next_attempt <> given.next_attempt AND status <> 'sent' AND pause >= 0) AS judged (is_restarted)
    WHERE counts AND (given.status = 'pending' OR given.webhook_id IN (SELECT id FROM webhook))
    FOR UPDATE OF deliveries SKIP LOCKED
), finished AS (
    DELETE FROM deliveries USING accepted
    WHERE deliveries.id = ANY(ARRAY[accepted.id]) AND accepted.status <> 'pending'
    RETURNING deliveries.*, accepted.status, accepted.log
), archived AS (
    INSERT INTO finished_deliveries
        (id, webhook_id, task_id, status, request_id, traceparent, created, lease, attempt_log, due_at, host)
    SELECT id, webhook_id, task_id, status, request_id, traceparent, created, lease,
        CASE WHEN jsonb_array_length(attempt_log) < 100 THEN attempt_log ELSE attempt_log - 0 END || log, due_at,
        CASE status WHEN 'fail' THEN host END
    FROM finished
), followed AS (
    UPDATE webhooks SET status = finished.status FROM finished
    WHERE webhooks.id = ANY(ARRAY[finished.webhook_id]) AND (due_at IS NULL OR due_at = last_due)
), waiting AS (
    UPDATE deliveries SET lease = deliveries.lease + (accepted.pause >= 0)::integer,
        next_attempt = CASE WHEN accepted.pause < 0 THEN next_attempt
            ELSE now() + accepted.pause * interval '1 ms' END,
        suspended_for = CASE WHEN accepted.pause < 0 THEN deliveries.suspended_for ELSE accepted.suspended_for END,
        attempts = attempts + jsonb_array_length(accepted.log),
        lost_claims = CASE WHEN accepted.pause < 0 AND on_trial THEN lost_claims ELSE 0 END,
        lost_trials = CASE WHEN accepted.pause < 0 AND on_trial THEN lost_trials - 1 ELSE 0 END, on_trial = false,
        attempt_log = CASE WHEN jsonb_array_length(attempt_log) < 100 THEN attempt_log
            ELSE attempt_log - 0 END || accepted.log
    FROM accepted
    WHERE deliveries.id = ANY(ARRAY[accepted.id]) AND accepted.status = 'pending'
)
SELECT id, true FROM accepted
UNION ALL
SELECT id, CASE WHEN counts THEN false END FROM given WHERE id NOT IN (SELECT id FROM accepted) AND EXISTS (
    SELECT FROM deliveries WHERE deliveries.id = ANY(ARRAY[given.id]) AND deliveries.lease = given.lease)";

/// The pause of a delivery that was not sent: it stays due when it was.
const UNCHANGED: i64 = -1;

fn milliseconds(duration: Duration) -> i64 {
    i64::try_from(duration.as_millis()).unwrap_or(i64::MAX)
}
