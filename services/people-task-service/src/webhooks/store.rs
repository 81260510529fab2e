//! Webhooks. The statement that registers them is raw SQL because it changes many tasks in one round trip, together with
//! rows of several tables.

use std::collections::HashMap;

use audit_log::{Entry, RequestMeta, insert_entries};
use database::{Error, column, prepared};
use diesel::dsl::sql;
use diesel::prelude::*;
use diesel::sql_types::{Array, BigInt, Binary, Bool, Integer, Jsonb, Nullable, Text};
use telemetry::RequestContext;
use values::{DeliveryId, Fingerprint, Names as _, TaskId, UserId, WebhookId};

use crate::deliveries::{DueDelivery, host_of, lane_of, owner_of};
use crate::free_rows::lock_free_rows;
use crate::idempotency::Repeatable;
use crate::schema::{allowed_users, webhooks};
use crate::status::{DeliveryStatus, WebhookEvent, shown_status};
use crate::tasks::{AuthenticatedUser, Task, find_tasks};
use crate::webhook_signature::WebhookSecret;
use crate::webhooks::requests::NewWebhookFields;

/// A webhook without its signing secret, which only the worker needs.
#[derive(Debug, Clone, Queryable, Selectable)]
#[diesel(table_name = webhooks)]
#[diesel(check_for_backend(diesel::pg::Pg))]
pub(crate) struct Webhook {
    pub(crate) id: WebhookId,
    pub(crate) task_id: TaskId,
    pub(crate) registered_by: UserId,
    pub(crate) url: String,
    pub(crate) status: DeliveryStatus,
    /// The document of its options.
    pub(crate) options: Option<String>,
    /// What it is called for, unless that is the default of the path on which it was registered.
    #[diesel(select_expression = (webhooks::with_task_id, webhooks::on_approved, webhooks::on_rejected, webhooks::on_due, webhooks::on_cancelled))]
    #[diesel(deserialize_as = EventColumns)]
    pub(crate) events: Option<Vec<WebhookEvent>>,
}

#[derive(Queryable)]
pub(crate) struct EventColumns {
    is_plugin: bool,
    approved: bool,
    rejected: bool,
    due: bool,
    cancelled: bool,
}

impl From<EventColumns> for Option<Vec<WebhookEvent>> {
    fn from(columns: EventColumns) -> Self {
        special_events(columns.is_plugin, |event| match event {
            WebhookEvent::Approved => columns.approved,
            WebhookEvent::Rejected => columns.rejected,
            WebhookEvent::Due => columns.due,
            WebhookEvent::Cancelled => columns.cancelled,
        })
    }
}

/// What a webhook is called for, unless that is the default: whether a registration named the default is not stored.
pub(super) fn special_events(
    is_plugin: bool,
    wants: impl Fn(WebhookEvent) -> bool,
) -> Option<Vec<WebhookEvent>> {
    let all = WebhookEvent::ALL.iter().copied();
    let wanted: Vec<_> = all.filter(|event| wants(*event)).collect();
    (wanted != default_events(is_plugin)).then_some(wanted)
}

fn default_events(is_plugin: bool) -> &'static [WebhookEvent] {
    if is_plugin {
        &[
            WebhookEvent::Approved,
            WebhookEvent::Rejected,
            WebhookEvent::Due,
        ]
    } else {
        &[WebhookEvent::Approved, WebhookEvent::Rejected]
    }
}

/// Loads the webhooks of a task, oldest first.
pub(crate) fn load_of_task(
    connection: &mut PgConnection,
    task: TaskId,
) -> Result<Vec<Webhook>, Error> {
    let rows = webhooks::table
        .filter(webhooks::task_id.eq(task))
        .order((webhooks::created, webhooks::id))
        .select(Webhook::as_select())
        .load(connection);
    Ok(rows?)
}

pub(crate) fn find(connection: &mut PgConnection, id: WebhookId) -> Result<Option<Webhook>, Error> {
    let found = webhooks::table
        .find(id)
        .select(Webhook::as_select())
        .first(connection)
        .optional();
    Ok(found?)
}

/// Loads the ids of at most `limit` webhooks that a user registered for tasks of others, and of these tasks.
pub(crate) fn load_of_user(
    connection: &mut PgConnection,
    user: UserId,
    limit: usize,
) -> Result<Vec<(WebhookId, TaskId)>, Error> {
    let ids = webhooks::table
        .filter(webhooks::registered_by.eq(user))
        // A literal, for which Postgres uses the partial index.
        .filter(sql::<Bool>("registered_as IS DISTINCT FROM 'creator'"))
        .limit(i64::try_from(limit).unwrap_or(i64::MAX))
        .select((webhooks::id, webhooks::task_id))
        .load(connection);
    Ok(ids?)
}

/// Deletes webhooks with their deliveries, which the transaction has locked. Returns their number.
pub(crate) fn delete(connection: &mut PgConnection, ids: &[WebhookId]) -> Result<usize, Error> {
    let webhooks = webhooks::table.filter(webhooks::id.eq_any(ids));
    // A decision locks several webhooks in the same order.
    let _locked: Vec<WebhookId> = webhooks
        .clone()
        .order(webhooks::id)
        .for_update()
        .select(webhooks::id)
        .load(connection)?;
    Ok(diesel::delete(webhooks).execute(connection)?)
}

/// Whether tasks have more than this many webhooks together.
pub(crate) fn are_more_than(
    connection: &mut PgConnection,
    number: i64,
    tasks: &[TaskId],
) -> Result<bool, Error> {
    let webhooks = webhooks::table.filter(webhooks::task_id.eq_any(tasks));
    let next = webhooks.offset(number).limit(1);
    Ok(diesel::select(diesel::dsl::exists(next)).get_result(connection)?)
}

/// Locks those webhooks of tasks that no other transaction has locked, until the end of the transaction. Returns the
/// tasks that have another one.
pub(crate) fn lock_free_of_tasks(
    connection: &mut PgConnection,
    tasks: &[TaskId],
) -> Result<Vec<TaskId>, Error> {
    let rows = webhooks::table.filter(webhooks::task_id.eq_any(tasks));
    Ok(lock_free_rows!(connection, rows, webhooks of type WebhookId, task_id))
}

/// Locks those webhooks that no other transaction has locked, until the end of the transaction, and returns them.
pub(crate) fn lock_free(
    connection: &mut PgConnection,
    ids: &[WebhookId],
) -> Result<Vec<WebhookId>, Error> {
    let locked = webhooks::table
        .filter(webhooks::id.eq_any(ids))
        .for_update()
        .skip_locked()
        .select(webhooks::id)
        .load(connection);
    Ok(locked?)
}

#[derive(QueryableByName)]
pub(super) struct TaskWithCount {
    #[diesel(embed)]
    pub(super) task: Task,
    #[diesel(embed)]
    pub(super) webhooks: WebhookCount,
}

#[derive(Debug, Clone, Copy, QueryableByName)]
pub(super) struct WebhookCount {
    #[diesel(sql_type = BigInt)]
    pub(super) all: i64,
    /// Those that approvers and requesters have registered.
    #[diesel(sql_type = BigInt)]
    pub(super) of_others: i64,
}

pub(super) fn find_all(
    connection: &mut PgConnection,
    ids: &[TaskId],
) -> Result<HashMap<TaskId, TaskWithCount>, Error> {
    let found: Vec<TaskWithCount> = prepared(FIND_ALL)
        .bind::<Array<Binary>, _>(ids)
        .load(connection)?;
    Ok(found.into_iter().map(|row| (row.task.id, row)).collect())
}

const FIND_ALL: &str = concat!(
    find_tasks!(", webhooks.*"),
    "
    CROSS JOIN LATERAL (
        SELECT count(*) AS all, count(*) FILTER (WHERE registered_as IN ('approver', 'requester')) AS of_others
        FROM webhooks WHERE webhooks.task_id = tasks.id
    ) AS webhooks"
);

/// A request to register a webhook whose address was checked.
pub(crate) struct Registration {
    pub(crate) webhook: Webhook,
    /// Which key sealed its headers.
    pub(super) header_key: Option<String>,
    pub(super) user: AuthenticatedUser,
    pub(super) new: NewWebhookFields,
    /// It was made on a plugin path, so its task may be decided.
    pub(super) is_plugin: bool,
    pub(super) cause: RequestContext,
    pub(super) meta: RequestMeta,
    pub(super) repeat: Option<Repeatable>,
}

impl Registration {
    fn events(&self) -> &[WebhookEvent] {
        match &self.new.events {
            Some(events) => &events.0,
            None => default_events(self.is_plugin),
        }
    }

    /// A registration by an approver or a requester takes nothing of the creator's share.
    fn lane(&self) -> String {
        let caller = &self.user.caller;
        lane_of(&self.webhook.url, &owner_of(caller.id(), caller.group()))
    }
}

pub(super) struct NewWebhook<'a> {
    pub(super) registration: &'a Registration,
    /// The version of the task by which it was judged.
    pub(super) version: i32,
    /// What gives the user the right. Attempts compare it with the task and the user of that time.
    pub(super) registered_as: &'static str,
    pub(super) registrant_email: Option<String>,
    pub(super) registrant_secret: Option<Fingerprint>,
    pub(super) entry: Entry,
}

/// Inserts webhooks, with their audit entries, and with deliveries if their task is decided and they want the decision.
/// The webhooks of erased users are not inserted. Returns the deliveries of those that are.
///
/// As for decisions, nothing is inserted for a task that another transaction is changing, or has changed since the
/// webhooks were judged.
pub(super) fn insert(
    connection: &mut PgConnection,
    new: &[NewWebhook<'_>],
) -> Result<HashMap<WebhookId, Option<DueDelivery>>, Error> {
    if new.is_empty() {
        return Ok(HashMap::new());
    }
    let given: Vec<_> = new.iter().map(|n| n.registration).collect();
    let has = |given: &Registration, event| given.events().contains(&event);
    let inserted: Vec<(WebhookId, Option<DeliveryId>, String)> = prepared(INSERT)
        .bind::<Array<Binary>, _>(column(&given, |g| g.webhook.id))
        .bind::<Array<Binary>, _>(column(&given, |g| g.webhook.task_id))
        .bind::<Array<Integer>, _>(column(new, |n| n.version))
        .bind::<Array<Binary>, _>(column(&given, |g| g.webhook.registered_by))
        .bind::<Array<Text>, _>(column(&given, |g| g.user.caller.incarnation()))
        .bind::<Array<Text>, _>(column(new, |n| n.registered_as))
        .bind::<Array<Nullable<Text>>, _>(column(new, |n| n.registrant_email.as_deref()))
        .bind::<Array<Nullable<Binary>>, _>(column(new, |n| {
            n.registrant_secret.map(|secret| *secret.as_bytes())
        }))
        .bind::<Array<Text>, _>(column(&given, |g| g.webhook.url.as_str()))
        .bind::<Array<Text>, _>(column(&given, |g| host_of(&g.webhook.url)))
        .bind::<Array<Text>, _>(column(&given, |g| g.lane()))
        .bind::<Array<Nullable<Text>>, _>(column(&given, |g| {
            g.new.secret.as_ref().map(WebhookSecret::expose)
        }))
        .bind::<Array<Bool>, _>(column(&given, |g| g.is_plugin))
        .bind::<Array<Bool>, _>(column(&given, |g| has(g, WebhookEvent::Approved)))
        .bind::<Array<Bool>, _>(column(&given, |g| has(g, WebhookEvent::Rejected)))
        .bind::<Array<Bool>, _>(column(&given, |g| has(g, WebhookEvent::Due)))
        .bind::<Array<Text>, _>(column(&given, |g| g.cause.request_id.as_str()))
        .bind::<Array<Text>, _>(column(&given, |g| g.cause.trace.to_string()))
        .bind::<Array<Jsonb>, _>(column(new, |n| n.entry.to_json()))
        .bind::<Array<Nullable<Text>>, _>(column(&given, |g| g.webhook.options.as_deref()))
        .bind::<Array<Nullable<Text>>, _>(column(&given, |g| g.header_key.as_deref()))
        .bind::<Array<Bool>, _>(column(&given, |g| has(g, WebhookEvent::Cancelled)))
        .returning::<(Binary, Nullable<Binary>, Text)>()
        .load(connection)?;
    let inserted = inserted.into_iter().map(|(webhook, delivery, lane)| {
        let due = delivery.map(|id| DueDelivery { id, lane });
        (webhook, due)
    });
    Ok(inserted.collect())
}

const INSERT: &str = concat!(
    "WITH ",
    allowed_users!("$4, $5"),
    ", judged AS (
    SELECT given.*, ",
    shown_status!(),
    " AS status, decision_by, creator
    FROM unnest($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20, $21, $22)
        AS given (
            id, task_id, version, registered_by, incarnation, registered_as, registrant_email, registrant_secret, url,
            host, lane, secret, with_task_id, on_approved, on_rejected, on_due, request_id, traceparent, entry,
            options, header_key, on_cancelled)
        JOIN task_states ON task_states.task_id = ANY(ARRAY[given.task_id])
    WHERE task_states.version = given.version AND (registered_by, incarnation) IN (SELECT * FROM allowed)
    FOR NO KEY UPDATE OF task_states SKIP LOCKED
), changed AS (
    UPDATE task_states SET version = task_states.version + 1 FROM judged
    WHERE task_states.task_id = ANY(ARRAY[judged.task_id])
), inserted AS (
    INSERT INTO webhooks
        (id, task_id, registered_by, url, host, lane, secret, with_task_id, on_approved, on_rejected, on_due,
        on_cancelled, registered_as, registrant_email, registrant_secret, options, header_key)
    SELECT id, task_id, registered_by, url, host, lane, secret, with_task_id, on_approved, on_rejected, on_due,
        on_cancelled, registered_as, registrant_email, registrant_secret, options, header_key
    FROM judged
), awaited AS (
    INSERT INTO due_dates (webhook_id, due_at, creator)
    SELECT id, decision_by, coalesce(creator_of_lane(lane), creator) FROM judged
    WHERE on_due AND status = 'pending' AND decision_by IS NOT NULL
), delivered AS (
    INSERT INTO deliveries (id, webhook_id, task_id, host, lane, request_id, traceparent, has_options)
    SELECT new_id(), id, task_id, host, lane, request_id, traceparent, options IS NOT NULL OR status = 'cancelled'
    FROM judged
    WHERE status = 'approved' AND on_approved OR status = 'rejected' AND on_rejected
        OR status = 'cancelled' AND on_cancelled
    RETURNING id, webhook_id
), recorded AS (",
    insert_entries!("SELECT entry FROM judged"),
    ")
SELECT judged.id, delivered.id, judged.lane
FROM judged LEFT JOIN delivered ON delivered.webhook_id = judged.id"
);
