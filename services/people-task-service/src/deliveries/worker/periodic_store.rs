//! The statements of [`periodic`](super::periodic), in raw SQL because one reads and changes rows of several tables, and
//! the index of sealed headers serves ranges only.

use std::time::Duration;

use database::{Error, interval, prepared};
use diesel::sql_types::{Array, BigInt, Binary, Bool, Interval, Nullable, Text};
use diesel::{PgConnection, Queryable, RunQueryDsl as _};
use telemetry::RequestContext;
use values::{DeliveryId, UserId, WebhookId};

use super::ownership_store::KNOWS_DUE_DATES;
use crate::deliveries::DueDelivery;
use crate::turns::TurnTable;

/// Creates the next partitions of finished deliveries. DDL belongs to the owner's functions.
pub(super) fn create_partitions(connection: &mut PgConnection) -> Result<(), Error> {
    prepared("SELECT create_finished_deliveries_partitions()").execute(connection)?;
    Ok(())
}

/// Drops a partition of deliveries that have all been finished for longer than `keep`. Returns whether there was one.
pub(super) fn drop_partition(connection: &mut PgConnection, keep: Duration) -> Result<bool, Error> {
    let drop = prepared("SELECT drop_finished_deliveries_partition($1)")
        .bind::<Interval, _>(interval(keep));
    Ok(drop.returning::<Bool>().get_result(connection)?)
}

/// Whether a due date has passed that a webhook waits for.
pub(super) fn has_passed(connection: &mut PgConnection) -> Result<bool, Error> {
    let find = prepared("SELECT EXISTS (SELECT FROM due_dates WHERE due_at <= now())");
    Ok(find.returning::<Bool>().get_result(connection)?)
}

pub(super) const TURNS: TurnTable = TurnTable {
    name: "due_dates",
    due_at: "due_at",
};

/// Handles those webhooks of each creator whose due date passed first, inside a transaction, the same number of each and at
/// most one for each context: each gets a delivery of `due` if its task is pending. Returns an element for each webhook,
/// with its delivery if it got one.
///
/// The commit waits for the disk, unlike others of the worker: a delivery that was sent must not be added again under
/// another identifier.
pub(super) fn handle_passed(
    connection: &mut PgConnection,
    creators: &[UserId],
    contexts: &[RequestContext],
) -> Result<Vec<Option<DueDelivery>>, Error> {
    let each = contexts.len().checked_div(creators.len());
    prepared("SET LOCAL synchronous_commit = on").execute(connection)?;
    let requests: Vec<_> = contexts.iter().map(|c| c.request_id.as_str()).collect();
    let traces: Vec<_> = contexts.iter().map(|c| c.trace.to_string()).collect();
    let handled: Vec<(Option<DeliveryId>, Option<String>)> = prepared(HANDLE_PASSED)
        .bind::<Array<Text>, _>(requests)
        .bind::<Array<Text>, _>(traces)
        .bind::<BigInt, _>(i64::try_from(each.unwrap_or_default()).unwrap_or(i64::MAX))
        .bind::<BigInt, _>(KNOWS_DUE_DATES)
        .bind::<Array<Binary>, _>(creators)
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
// Only the index of creators matches how the webhooks of one are found, as for mails.
//
// A worker of an earlier version would send such a delivery with the task's own status, so none is added while one runs.
// A service of an earlier version changes and decides tasks without changing `due_dates`.
const HANDLE_PASSED: &str = "
WITH passed AS (
    SELECT first.webhook_id FROM unnest($5) AS turn (creator) CROSS JOIN LATERAL (
        SELECT webhook_id, due_at FROM due_dates
        WHERE due_dates.creator >= turn.creator AND due_dates.creator <= turn.creator
        ORDER BY due_dates.creator, due_at LIMIT $3 FOR UPDATE SKIP LOCKED
    ) AS first
    WHERE first.due_at <= now() AND NOT EXISTS (SELECT FROM delivery_workers WHERE protocol < $4)
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

#[derive(Queryable)]
pub(super) struct SealedRow {
    pub(super) id: WebhookId,
    pub(super) options: String,
    header_key: String,
}

pub(super) fn load_sealed_by(
    connection: &mut PgConnection,
    keys: &[String],
    limit: i64,
) -> Result<Vec<SealedRow>, Error> {
    let load = prepared(
        "SELECT id, options, header_key FROM webhooks WHERE header_key = ANY($1) AND options IS NOT NULL LIMIT $2",
    );
    let load = load.bind::<Array<Text>, _>(keys).bind::<BigInt, _>(limit);
    Ok(load.returning::<(Binary, Text, Text)>().load(connection)?)
}

/// Replaces the options of a webhook, unless another worker has done so.
pub(super) fn replace(
    connection: &mut PgConnection,
    row: &SealedRow,
    options: &str,
    key: &str,
) -> Result<bool, Error> {
    let replace = prepared(
        "UPDATE webhooks SET options = $3, header_key = $4 WHERE id = $1 AND header_key = $2",
    );
    let replaced = replace
        .bind::<Binary, _>(row.id)
        .bind::<Text, _>(&row.header_key)
        .bind::<Text, _>(options)
        .bind::<Text, _>(key)
        .execute(connection)?;
    Ok(replaced > 0)
}

/// How many webhooks have headers that another key sealed, counted up to 10,000 before and after it.
pub(super) fn count_of_others(connection: &mut PgConnection, key: &str) -> Result<i64, Error> {
    let count = prepared(
        "SELECT (SELECT count(*) FROM (SELECT FROM webhooks WHERE header_key < $1 LIMIT 10000) AS before)
            + (SELECT count(*) FROM (SELECT FROM webhooks WHERE header_key > $1 LIMIT 10000) AS after)",
    );
    let count = count.bind::<Text, _>(key).returning::<BigInt>();
    Ok(count.get_result(connection)?)
}
