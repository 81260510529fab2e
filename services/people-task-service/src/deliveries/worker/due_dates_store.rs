//! The statements of [`due_dates`](super::due_dates), in raw SQL because one reads and changes rows of several tables.

use database::{Error, prepared};
use diesel::sql_types::{Array, BigInt, Binary, Bool, Nullable, Text};
use diesel::{PgConnection, RunQueryDsl as _};
use telemetry::RequestContext;
use values::DeliveryId;

use super::ownership_store::KNOWS_DUE_DATES;
use crate::deliveries::DueDelivery;

/// Whether a due date has passed that a webhook waits for.
pub(super) fn has_passed(connection: &mut PgConnection) -> Result<bool, Error> {
    let find = prepared("SELECT EXISTS (SELECT FROM due_dates WHERE due_at <= now())");
    Ok(find.returning::<Bool>().get_result(connection)?)
}

/// Handles the webhooks whose due date passed first, inside a transaction, at most one for each context: each gets a
/// delivery of `due` if its task is pending. Returns an element for each webhook, with its delivery if it got one.
///
/// The commit waits for the disk, unlike others of the worker: a delivery that was sent must not be added again under
/// another identifier.
pub(super) fn handle_passed(
    connection: &mut PgConnection,
    contexts: &[RequestContext],
) -> Result<Vec<Option<DueDelivery>>, Error> {
    prepared("SET LOCAL synchronous_commit = on").execute(connection)?;
    let requests: Vec<_> = contexts.iter().map(|c| c.request_id.as_str()).collect();
    let traces: Vec<_> = contexts.iter().map(|c| c.trace.to_string()).collect();
    let handled: Vec<(Option<DeliveryId>, Option<String>)> = prepared(HANDLE_PASSED)
        .bind::<Array<Text>, _>(requests)
        .bind::<Array<Text>, _>(traces)
        .bind::<BigInt, _>(i64::try_from(contexts.len()).unwrap_or(i64::MAX))
        .bind::<BigInt, _>(KNOWS_DUE_DATES)
        .returning::<(Nullable<Binary>, Nullable<Text>)>()
        .load(connection)?;
    let handled = handled.into_iter().map(|(id, lane)| id.zip(lane));
    Ok(handled
        .map(|due| due.map(|(id, lane)| DueDelivery { id, lane }))
        .collect())
}

// It never waits for a lock, so it takes part in no deadlock. What it finds locked is still there the next time. The
// new version of the task makes a decision that has read these webhooks before read them again.
//
// A worker of an earlier version would send such a delivery with the task's own status, so none is added while one runs.
// A service of an earlier version changes and decides tasks without changing `due_dates`.
const HANDLE_PASSED: &str = "
WITH passed AS (
    SELECT webhook_id FROM due_dates
    WHERE due_at <= now() AND NOT EXISTS (SELECT FROM delivery_workers WHERE protocol < $4)
    ORDER BY due_at LIMIT $3
    FOR UPDATE OF due_dates SKIP LOCKED
), judged AS (
    SELECT webhooks.id, webhooks.task_id, decision_by, task_states.status = 'pending' AS is_pending
    FROM passed JOIN webhooks ON webhooks.id = ANY(ARRAY[passed.webhook_id])
        JOIN task_states ON task_states.task_id = ANY(ARRAY[webhooks.task_id])
    FOR NO KEY UPDATE OF webhooks, task_states SKIP LOCKED
), postponed AS (
    UPDATE due_dates SET due_at = decision_by FROM judged
    WHERE due_dates.webhook_id = ANY(ARRAY[judged.id]) AND is_pending AND decision_by > now()
), removed AS (
    DELETE FROM due_dates USING judged
    WHERE due_dates.webhook_id = ANY(ARRAY[judged.id]) AND (is_pending AND decision_by > now()) IS NOT TRUE
), told AS (
    UPDATE webhooks SET status = 'pending', last_due = decision_by FROM judged
    WHERE webhooks.id = ANY(ARRAY[judged.id]) AND is_pending AND decision_by <= now()
    RETURNING webhooks.id, webhooks.task_id, webhooks.host, webhooks.lane, last_due, options IS NOT NULL AS has_options
), changed AS (
    UPDATE task_states SET version = version + 1 WHERE task_id = ANY(ARRAY(SELECT task_id FROM told))
), delivered AS (
    INSERT INTO deliveries (id, webhook_id, task_id, host, lane, request_id, traceparent, due_at, has_options)
    SELECT new_id(), id, task_id, host, coalesce(lane, ''), ($1)[number], ($2)[number], last_due, has_options
    FROM (SELECT told.*, row_number() OVER ()::integer AS number FROM told) AS numbered
    RETURNING id, webhook_id, lane
)
SELECT delivered.id AS delivery_id, delivered.lane FROM judged LEFT JOIN delivered ON delivered.webhook_id = judged.id";
