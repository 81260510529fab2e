//! The two statements of a decision. Between them nothing is locked: the second one changes the task only if it
//! has not changed since the first one read it. A trigger makes a new webhook a change of its task. A
//! transaction that locks first would take six round trips in place of two, and decisions are most of the
//! system's load. For the same reason one statement decides the task, inserts its deliveries and records the
//! audit entry; it is the only one outside `tasks/` that changes `tasks`.

use audit_log::Entry;
use database::{Error, interval, prepared};
use diesel::sql_types::{Array, Binary, Interval, Jsonb, Text};
use diesel::{OptionalExtension as _, PgConnection, QueryableByName, RunQueryDsl as _};
use telemetry::RequestContext;
use values::{DeliveryId, TaskId, WebhookId};

use crate::deliveries::host_of;
use crate::status::TaskStatus;
use crate::tasks::{Task, task_columns};

/// A task with its webhooks, as read before a decision.
#[derive(QueryableByName)]
pub(crate) struct TaskSnapshot {
    #[diesel(embed)]
    pub(crate) task: Task,
    /// Differs after every change of the row.
    #[diesel(sql_type = Text)]
    version: String,
    #[diesel(sql_type = Array<Binary>)]
    webhooks: Vec<WebhookId>,
    #[diesel(sql_type = Array<Text>)]
    urls: Vec<String>,
}

/// Loads a task with its webhooks.
pub(crate) fn load_snapshot(
    connection: &mut PgConnection,
    id: TaskId,
) -> Result<Option<TaskSnapshot>, Error> {
    let snapshot = prepared(LOAD_SNAPSHOT).bind::<Binary, _>(id);
    Ok(snapshot.get_result(connection).optional()?)
}

// xmin is the number of the transaction that last changed the row.
const LOAD_SNAPSHOT: &str = concat!(
    "SELECT ",
    task_columns!("tasks"),
    ", tasks.xmin::text AS version,
    ARRAY(SELECT id FROM webhooks WHERE task_id = tasks.id ORDER BY id) AS webhooks,
    ARRAY(SELECT url FROM webhooks WHERE task_id = tasks.id ORDER BY id) AS urls
FROM tasks WHERE id = $1"
);

/// A decided task, and its deliveries.
pub(crate) type Decided = (Task, Vec<DeliveryId>);

/// Decides a pending task, and inserts one delivery for each webhook and the audit entry. Returns `None` if the
/// task has changed since the snapshot.
pub(crate) fn record_decision(
    connection: &mut PgConnection,
    snapshot: &TaskSnapshot,
    status: TaskStatus,
    cause: &RequestContext,
    entry: &Entry,
) -> Result<Option<Decided>, Error> {
    let deliveries: Vec<_> = snapshot
        .webhooks
        .iter()
        .map(|_| DeliveryId::generate())
        .collect();
    let hosts: Vec<_> = snapshot.urls.iter().map(|url| host_of(url)).collect();
    let grace = interval(jobs::REPUBLISH_GRACE);
    let decide = prepared(RECORD_DECISION)
        .bind::<Binary, _>(snapshot.task.id)
        .bind::<Text, _>(&snapshot.version)
        .bind::<Text, _>(status)
        .bind::<Array<Binary>, _>(&deliveries)
        .bind::<Array<Binary>, _>(&snapshot.webhooks)
        .bind::<Array<Text>, _>(&hosts)
        .bind::<Text, _>(&cause.request_id)
        .bind::<Text, _>(cause.trace.to_string())
        .bind::<Interval, _>(grace)
        .bind::<Jsonb, _>(entry.to_json());
    let task = decide.get_result(connection).optional()?;
    Ok(task.map(|task| (task, deliveries)))
}

// The lock waits for a webhook that is being deleted, which then gets no delivery. Arrays are read by position
// because a join with them would depend on their lengths, so that Postgres would plan every call again.
const RECORD_DECISION: &str = concat!(
    "WITH decided AS (
    UPDATE tasks SET status = $3, decision_made = now(), mtime = now()
    WHERE id = $1 AND status = 'pending' AND xmin::text = $2
    RETURNING *
), delivered AS (
    INSERT INTO deliveries
        (id, webhook_id, task_id, origin, request_id, traceparent, republish_at)
    SELECT ($4)[array_position($5, webhooks.id)], webhooks.id, decided.id,
        ($6)[array_position($5, webhooks.id)], $7, $8, now() + $9
    FROM decided JOIN webhooks ON webhooks.task_id = decided.id
    ORDER BY webhooks.id
    FOR KEY SHARE OF webhooks
)
SELECT ",
    task_columns!("decided"),
    ", record_audit_entry($10) FROM decided"
);
