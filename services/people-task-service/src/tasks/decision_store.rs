//! The two statements of a decision. Between them nothing is locked: the second one changes the task only if
//! nobody changed it since the first one read it, and its webhooks are part of that (a trigger on `webhooks`
//! sees to it). Decisions are what the system is busy with, and a transaction that locks first takes six
//! round trips for what these take two for.

use audit_log::Entry;
use database::{Error, prepared};
use diesel::sql_types::{Array, Binary, Integer, Text};
use diesel::{OptionalExtension as _, PgConnection, QueryableByName, RunQueryDsl as _};
use telemetry::RequestContext;
use values::{DeliveryId, TaskId, WebhookId};

use crate::deliveries::origin_of;
use crate::deliveries::store::PUBLISHED_BY_ITS_MAKER;
use crate::status::TaskStatus;
use crate::tasks::Task;

/// A task as somebody saw it who is about to decide it.
#[derive(QueryableByName)]
pub(super) struct Seen {
    #[diesel(embed)]
    pub(super) task: Task,
    /// Another one after every change.
    #[diesel(sql_type = Text)]
    version: String,
    #[diesel(sql_type = Array<Binary>)]
    webhooks: Vec<WebhookId>,
    #[diesel(sql_type = Array<Text>)]
    urls: Vec<String>,
}

/// The task with its webhooks, if it exists.
pub(super) fn see(connection: &mut PgConnection, id: TaskId) -> Result<Option<Seen>, Error> {
    let seen = prepared(SEE).bind::<Binary, _>(id);
    Ok(seen.get_result(connection).optional()?)
}

// Every change of a row gives it another xmin, which is the number of the transaction that made it.
const SEE: &str = "
SELECT tasks.*, tasks.xmin::text AS version,
    ARRAY(SELECT id FROM webhooks WHERE task_id = tasks.id ORDER BY id) AS webhooks,
    ARRAY(SELECT url FROM webhooks WHERE task_id = tasks.id ORDER BY id) AS urls
FROM tasks WHERE id = $1";

/// A task that was decided, and its deliveries.
pub(super) type Resolved = (Task, Vec<DeliveryId>);

/// Moves a task that was seen pending to the state that was decided, writes one delivery for each webhook,
/// and says so in the audit log; `None` when the task was changed since.
pub(super) fn resolve(
    connection: &mut PgConnection,
    seen: &Seen,
    status: TaskStatus,
    cause: &RequestContext,
    entry: Entry,
) -> Result<Option<Resolved>, Error> {
    let deliveries: Vec<_> = seen
        .webhooks
        .iter()
        .map(|_| DeliveryId::generate())
        .collect();
    let origins: Vec<_> = seen.urls.iter().map(|url| origin_of(url)).collect();
    let resolve = prepared(RESOLVE)
        .bind::<Binary, _>(seen.task.id)
        .bind::<Text, _>(&seen.version)
        .bind::<Text, _>(status)
        .bind::<Array<Binary>, _>(&deliveries)
        .bind::<Array<Binary>, _>(&seen.webhooks)
        .bind::<Array<Text>, _>(&origins)
        .bind::<Text, _>(&cause.request_id)
        .bind::<Text, _>(cause.trace.to_string())
        .bind::<Integer, _>(PUBLISHED_BY_ITS_MAKER);
    let resolve = entry.record_with(resolve).also_run(DELIVER);
    let task = resolve.get_result(connection).optional()?;
    Ok(task.map(|task| (task, deliveries)))
}

const RESOLVE: &str = "
UPDATE tasks SET status = $3, decision_made = now(), mtime = now()
WHERE id = $1 AND status = 'pending' AND xmin::text = $2
RETURNING *";

// A webhook that is being deleted at this moment is waited for, and then not there. What belongs to it stands at
// its place in the arrays; a join with them would look cheaper to Postgres whenever it knows their lengths, so it
// would plan the statement at every call.
const DELIVER: &str = "
INSERT INTO deliveries (id, webhook_id, task_id, origin, request_id, traceparent, wake_at)
SELECT ($4)[array_position($5, webhooks.id)], webhooks.id, changed.id,
    ($6)[array_position($5, webhooks.id)], $7, $8, now() + $9 * interval '1 s'
FROM changed JOIN webhooks ON webhooks.task_id = changed.id
ORDER BY webhooks.id
FOR KEY SHARE OF webhooks";
