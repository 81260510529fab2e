//! The statement that registers webhooks. It is raw SQL because it judges and changes many tasks in one round trip,
//! together with rows of several tables.

use audit_log::Entry;
use database::{Error, prepared};
use diesel::sql_types::{Array, BigInt, Binary, Bool, Jsonb, Nullable, Text};
use diesel::{OptionalExtension as _, PgConnection, QueryableByName, RunQueryDsl as _};
use telemetry::RequestContext;
use values::{DeliveryId, TaskId, UserId, WebhookId};

use crate::audit::insert_entries;
use crate::columns::column;
use crate::tasks::{Grant, Task, granted, task_columns};
use crate::webhooks::requests::Events;

/// A task, and how many webhooks it has.
#[derive(QueryableByName)]
pub(super) struct TaskWithCount {
    #[diesel(embed)]
    pub(super) task: Task,
    #[diesel(sql_type = BigInt)]
    pub(super) webhooks: i64,
}

/// Finds a task, with the number of its webhooks.
pub(super) fn find(
    connection: &mut PgConnection,
    id: TaskId,
) -> Result<Option<TaskWithCount>, Error> {
    let found = prepared(FIND).bind::<Binary, _>(id).get_result(connection);
    Ok(found.optional()?)
}

const FIND: &str = concat!(
    "SELECT ",
    task_columns!(),
    ", (SELECT count(*) FROM webhooks WHERE webhooks.task_id = tasks.id) AS webhooks
    FROM tasks JOIN task_states ON task_states.task_id = tasks.id WHERE tasks.id = $1"
);

/// A webhook to be inserted, if its grant gives the permission.
pub(super) struct NewWebhook<'a> {
    pub(super) id: WebhookId,
    pub(super) task: TaskId,
    pub(super) grant: Grant,
    pub(super) registered_by: UserId,
    /// What may give the user a right to the task: the scope `admin`, the address in lower case, and the hash of a secret
    /// that was presented.
    pub(super) is_admin: bool,
    pub(super) email: Option<String>,
    pub(super) secret_hash: Option<Vec<u8>>,
    /// The incarnation of the user's token.
    pub(super) incarnation: Option<&'a str>,
    pub(super) url: &'a str,
    pub(super) host: String,
    pub(super) secret: Option<&'a str>,
    /// It was registered on a plugin path, so its task may be decided.
    pub(super) with_task_id: bool,
    pub(super) events: Events,
    pub(super) cause: &'a RequestContext,
    pub(super) entry: Entry,
}

/// A webhook that was inserted.
#[derive(QueryableByName)]
pub(super) struct Registered {
    #[diesel(sql_type = Binary)]
    pub(super) id: WebhookId,
    /// The delivery of a decision that was made before.
    #[diesel(sql_type = Nullable<Binary>)]
    pub(super) delivery_id: Option<DeliveryId>,
}

/// Inserts the webhooks that may be registered for tasks with fewer than `max_per_task`, with their audit entries, and
/// with deliveries if their task is decided and they want the decision. A task may occur once. The webhooks of erased
/// users are not inserted.
///
/// As for decisions, nothing is inserted for a task that another transaction is changing, or has changed since the
/// statement began.
pub(super) fn insert(
    connection: &mut PgConnection,
    new: &[NewWebhook<'_>],
    max_per_task: i64,
) -> Result<Vec<Registered>, Error> {
    let traces = new.iter().map(|n| n.cause.trace.to_string());
    let insert = prepared(INSERT)
        .bind::<Array<Binary>, _>(column(new, |n| n.id))
        .bind::<Array<Binary>, _>(column(new, |n| n.task))
        .bind::<Array<Bool>, _>(column(new, |n| n.grant.any_task))
        .bind::<Array<Nullable<Binary>>, _>(column(new, |n| n.grant.creator))
        .bind::<Array<Nullable<Text>>, _>(column(new, |n| n.grant.approver_key.as_deref()))
        .bind::<Array<Nullable<Text>>, _>(column(new, |n| n.grant.requester_key.as_deref()))
        .bind::<Array<Nullable<Binary>>, _>(column(new, |n| n.grant.approver_secret()))
        .bind::<Array<Nullable<Binary>>, _>(column(new, |n| n.grant.requester_secret()))
        .bind::<Array<Binary>, _>(column(new, |n| n.registered_by))
        .bind::<Array<Nullable<Text>>, _>(column(new, |n| n.incarnation))
        .bind::<Array<Text>, _>(column(new, |n| n.url))
        .bind::<Array<Text>, _>(column(new, |n| n.host.as_str()))
        .bind::<Array<Nullable<Text>>, _>(column(new, |n| n.secret))
        .bind::<Array<Bool>, _>(column(new, |n| n.with_task_id))
        .bind::<Array<Text>, _>(column(new, |n| n.cause.request_id.as_str()))
        .bind::<Array<Text>, _>(traces.collect::<Vec<_>>())
        .bind::<Array<Jsonb>, _>(column(new, |n| n.entry.to_json()))
        .bind::<BigInt, _>(max_per_task)
        .bind::<Array<Bool>, _>(column(new, |n| n.events.approved))
        .bind::<Array<Bool>, _>(column(new, |n| n.events.rejected))
        .bind::<Array<Bool>, _>(column(new, |n| n.events.due))
        .bind::<Array<Bool>, _>(column(new, |n| n.is_admin))
        .bind::<Array<Nullable<Text>>, _>(column(new, |n| n.email.as_deref()))
        .bind::<Array<Nullable<Binary>>, _>(column(new, |n| n.secret_hash.as_deref()));
    Ok(insert.load(connection)?)
}

const INSERT: &str = concat!(
    "WITH given AS (
    SELECT * FROM unnest($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $19, $20, $21,
        $22, $23, $24)
    AS given (
        id, task_id, any_task, creator, approver_key, requester_key, approver_secret, requester_secret, registered_by,
        incarnation, url, host, secret, with_task_id, request_id, traceparent, entry, on_approved, on_rejected, on_due,
        is_admin, email, secret_hash)
), permitted AS (
    SELECT given.id, given.task_id,
        CASE WHEN registered_by = tasks.creator THEN 'creator'
            WHEN is_admin THEN 'administrator'
            WHEN email = tasks.approver_key OR secret_hash = tasks.approver_secret THEN 'approver'
            ELSE 'requester' END AS registered_as,
        CASE WHEN registered_by <> tasks.creator AND email IN (tasks.approver_key, tasks.requester_key)
            THEN email END AS registrant_email,
        CASE WHEN registered_by <> tasks.creator AND secret_hash IN (tasks.approver_secret, tasks.requester_secret)
            THEN secret_hash END AS registrant_secret
    FROM given JOIN tasks ON tasks.id = ANY(ARRAY[given.task_id])
        JOIN task_states AS seen ON seen.task_id = ANY(ARRAY[given.task_id])
        JOIN task_states ON task_states.task_id = ANY(ARRAY[given.task_id])
    WHERE ",
    granted!(),
    " AND (task_states.status = 'pending' OR with_task_id) AND task_states.version = seen.version
        AND (SELECT count(*) FROM webhooks WHERE webhooks.task_id = given.task_id) < $18
        AND may_add_rows(registered_by, incarnation)
    FOR NO KEY UPDATE OF task_states SKIP LOCKED
), changed AS (
    UPDATE task_states SET version = task_states.version + 1 FROM permitted
    WHERE task_states.task_id = ANY(ARRAY[permitted.task_id])
    RETURNING permitted.id, task_states.status, decision_by, registered_as, registrant_email, registrant_secret
), inserted AS (
    INSERT INTO webhooks
        (id, task_id, registered_by, url, host, secret, with_task_id, on_approved, on_rejected, on_due,
        registered_as, registrant_email, registrant_secret)
    SELECT id, task_id, registered_by, url, host, secret, with_task_id, on_approved, on_rejected, on_due,
        registered_as, registrant_email, registrant_secret
    FROM changed JOIN given USING (id)
), awaited AS (
    INSERT INTO due_dates (webhook_id, due_at)
    SELECT id, decision_by FROM changed JOIN given USING (id)
    WHERE on_due AND changed.status = 'pending' AND decision_by IS NOT NULL
), delivered AS (
    INSERT INTO deliveries (id, webhook_id, task_id, host, request_id, traceparent)
    SELECT new_id(), id, task_id, host, request_id, traceparent FROM changed JOIN given USING (id)
    WHERE changed.status = 'approved' AND on_approved OR changed.status = 'rejected' AND on_rejected
    RETURNING id, webhook_id
), recorded AS (",
    insert_entries!("SELECT given.entry FROM changed JOIN given USING (id)"),
    ")
SELECT changed.id, delivered.id AS delivery_id
FROM changed LEFT JOIN delivered ON delivered.webhook_id = changed.id"
);
