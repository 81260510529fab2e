//! The two statements of a batch of decisions. Between them nothing is locked: the second one changes a task only in the
//! version that the first one read, and every change of a task and of its webhooks makes another version. They are raw
//! SQL because they act on many rows of several tables in one round trip.

use audit_log::Entry;
use chrono::{DateTime, Utc};
use database::{Error, prepared};
use diesel::sql_types::{Array, Binary, Integer, Jsonb, Nullable, Text, Timestamptz};
use diesel::{PgConnection, QueryableByName, RunQueryDsl as _};
use telemetry::RequestContext;
use values::{DeliveryId, Names as _, TaskId};

use crate::audit::insert_entries;
use crate::status::TaskStatus;
use crate::tasks::{Task, task_columns};

/// Loads tasks, in no order.
pub(super) fn load(connection: &mut PgConnection, ids: &[TaskId]) -> Result<Vec<Task>, Error> {
    Ok(prepared(LOAD)
        .bind::<Array<Binary>, _>(ids)
        .load(connection)?)
}

const LOAD: &str = concat!(
    "SELECT ",
    task_columns!(),
    " FROM tasks JOIN task_states ON task_states.task_id = tasks.id WHERE tasks.id = ANY($1)"
);

/// A decision that its actor may make, about a task in a version.
pub(super) struct PermittedDecision<'a> {
    pub(super) task: TaskId,
    pub(super) version: i32,
    pub(super) status: TaskStatus,
    pub(super) cause: &'a RequestContext,
    pub(super) entry: Entry,
}

/// A task that was decided, or one of its deliveries.
#[derive(QueryableByName)]
pub(super) struct DecidedRow {
    #[diesel(sql_type = Binary)]
    pub(super) task_id: TaskId,
    #[diesel(sql_type = Timestamptz)]
    pub(super) decision_made: DateTime<Utc>,
    #[diesel(sql_type = Nullable<Binary>)]
    pub(super) delivery_id: Option<DeliveryId>,
    #[diesel(sql_type = Nullable<Text>)]
    pub(super) host: Option<String>,
}

/// Decides tasks that are pending and still have their version, and inserts a delivery for each webhook and the audit
/// entries. Returns a row for each decided task, and one for each delivery.
pub(super) fn record(
    connection: &mut PgConnection,
    decisions: &[PermittedDecision<'_>],
) -> Result<Vec<DecidedRow>, Error> {
    let traces = decisions.iter().map(|d| d.cause.trace.to_string());
    let record = prepared(RECORD)
        .bind::<Array<Binary>, _>(column(decisions, |d| d.task))
        .bind::<Array<Integer>, _>(column(decisions, |d| d.version))
        .bind::<Array<Text>, _>(column(decisions, |d| d.status.name()))
        .bind::<Array<Text>, _>(column(decisions, |d| d.cause.request_id.as_str()))
        .bind::<Array<Text>, _>(traces.collect::<Vec<_>>())
        .bind::<Array<Jsonb>, _>(column(decisions, |d| d.entry.to_json()));
    Ok(record.load(connection)?)
}

fn column<'a, T>(
    decisions: &'a [PermittedDecision<'_>],
    value: impl Fn(&'a PermittedDecision<'_>) -> T,
) -> Vec<T> {
    decisions.iter().map(value).collect()
}

const RECORD: &str = concat!(
    "WITH given AS (
    SELECT * FROM unnest($1, $2, $3, $4, $5, $6) AS given (task_id, version, status, request_id, traceparent, entry)
), decided AS (
    UPDATE task_states
    SET status = given.status, decision_made = now(), mtime = now(), version = task_states.version + 1
    FROM given
    WHERE task_states.task_id = given.task_id
        AND task_states.status = 'pending' AND task_states.version = given.version
    RETURNING task_states.task_id, task_states.decision_made, request_id, traceparent, entry
), delivered AS (
    INSERT INTO deliveries (id, webhook_id, task_id, host, request_id, traceparent)
    SELECT new_id(), webhooks.id, task_id, webhooks.host, request_id, traceparent
    FROM decided JOIN webhooks USING (task_id)
    RETURNING id, task_id, host
), recorded AS (",
    insert_entries!("SELECT entry FROM decided"),
    ")
SELECT task_id, decision_made, NULL::bytea AS delivery_id, NULL::text AS host FROM decided
UNION ALL
SELECT task_id, now(), id, host FROM delivered"
);
