//! The two statements of a batch of registrations. As for decisions, the second one acts only on the version of a task
//! that the first one read. They are raw SQL because they act on many rows of several tables in one round trip.

use audit_log::Entry;
use database::{Error, prepared};
use diesel::sql_types::{Array, BigInt, Binary, Bool, Integer, Jsonb, Nullable, Text};
use diesel::{PgConnection, QueryableByName, RunQueryDsl as _};
use telemetry::RequestContext;
use values::{DeliveryId, TaskId, UserId, WebhookId};

use crate::audit::insert_entries;
use crate::tasks::{Task, task_columns};

/// A task, and how many webhooks it has.
#[derive(QueryableByName)]
pub(super) struct TaskWithCount {
    #[diesel(embed)]
    pub(super) task: Task,
    #[diesel(sql_type = BigInt)]
    pub(super) webhooks: i64,
}

/// Loads tasks, in no order.
pub(super) fn load(
    connection: &mut PgConnection,
    ids: &[TaskId],
) -> Result<Vec<TaskWithCount>, Error> {
    Ok(prepared(LOAD)
        .bind::<Array<Binary>, _>(ids)
        .load(connection)?)
}

const LOAD: &str = concat!(
    "SELECT ",
    task_columns!(),
    ", (SELECT count(*) FROM webhooks WHERE webhooks.task_id = tasks.id) AS webhooks
    FROM tasks JOIN task_states ON task_states.task_id = tasks.id WHERE tasks.id = ANY($1)"
);

/// A webhook that its user may register, for a task in a version.
pub(super) struct PermittedRegistration<'a> {
    pub(super) id: WebhookId,
    pub(super) task: TaskId,
    pub(super) version: i32,
    pub(super) registered_by: UserId,
    /// The incarnation of the user's token.
    pub(super) incarnation: Option<&'a str>,
    pub(super) url: &'a str,
    pub(super) host: String,
    pub(super) secret: Option<&'a str>,
    pub(super) with_task_id: bool,
    pub(super) cause: &'a RequestContext,
    pub(super) entry: Entry,
}

/// What became of a registration.
#[derive(QueryableByName)]
pub(super) struct Registered {
    #[diesel(sql_type = Binary)]
    pub(super) id: WebhookId,
    /// The user was not erased.
    #[diesel(sql_type = Bool)]
    pub(super) permitted: bool,
    /// Otherwise the task has another version by now.
    #[diesel(sql_type = Bool)]
    pub(super) registered: bool,
    /// The delivery of a decision that was made before.
    #[diesel(sql_type = Nullable<Binary>)]
    pub(super) delivery_id: Option<DeliveryId>,
}

/// Inserts webhooks of tasks that still have their version, with their audit entries, and with deliveries if their task
/// is decided. A task may occur once.
pub(super) fn insert(
    connection: &mut PgConnection,
    new: &[PermittedRegistration<'_>],
) -> Result<Vec<Registered>, Error> {
    let traces = new.iter().map(|n| n.cause.trace.to_string());
    let insert = prepared(INSERT)
        .bind::<Array<Binary>, _>(column(new, |n| n.id))
        .bind::<Array<Binary>, _>(column(new, |n| n.task))
        .bind::<Array<Integer>, _>(column(new, |n| n.version))
        .bind::<Array<Binary>, _>(column(new, |n| n.registered_by))
        .bind::<Array<Nullable<Text>>, _>(column(new, |n| n.incarnation))
        .bind::<Array<Text>, _>(column(new, |n| n.url))
        .bind::<Array<Text>, _>(column(new, |n| n.host.as_str()))
        .bind::<Array<Nullable<Text>>, _>(column(new, |n| n.secret))
        .bind::<Array<Bool>, _>(column(new, |n| n.with_task_id))
        .bind::<Array<Text>, _>(column(new, |n| n.cause.request_id.as_str()))
        .bind::<Array<Text>, _>(traces.collect::<Vec<_>>())
        .bind::<Array<Jsonb>, _>(column(new, |n| n.entry.to_json()));
    Ok(insert.load(connection)?)
}

fn column<'a, T>(
    new: &'a [PermittedRegistration<'_>],
    value: impl Fn(&'a PermittedRegistration<'_>) -> T,
) -> Vec<T> {
    new.iter().map(value).collect()
}

const INSERT: &str = concat!(
    "WITH given AS (
    SELECT * FROM unnest($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12) AS given (
        id, task_id, version, registered_by, incarnation, url, host, secret, with_task_id, request_id, traceparent,
        entry)
), permitted AS MATERIALIZED (
    SELECT id, task_id, version FROM given WHERE may_add_rows(registered_by, incarnation)
), changed AS (
    UPDATE task_states SET version = task_states.version + 1 FROM permitted
    WHERE task_states.task_id = permitted.task_id
        AND task_states.version = permitted.version
    RETURNING permitted.id, task_states.status
), inserted AS (
    INSERT INTO webhooks (id, task_id, registered_by, url, host, secret, with_task_id)
    SELECT id, task_id, registered_by, url, host, secret, with_task_id FROM changed JOIN given USING (id)
), delivered AS (
    INSERT INTO deliveries (id, webhook_id, task_id, host, request_id, traceparent)
    SELECT new_id(), id, task_id, host, request_id, traceparent FROM changed JOIN given USING (id)
    WHERE changed.status <> 'pending'
    RETURNING id, webhook_id
), recorded AS (",
    insert_entries!("SELECT given.entry FROM changed JOIN given USING (id)"),
    ")
SELECT given.id, permitted.id IS NOT NULL AS permitted, changed.id IS NOT NULL AS registered,
    delivered.id AS delivery_id
FROM given LEFT JOIN permitted USING (id) LEFT JOIN changed USING (id)
    LEFT JOIN delivered ON delivered.webhook_id = given.id"
);
