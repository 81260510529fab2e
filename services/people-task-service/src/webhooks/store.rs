use audit_log::Entry;
use database::Error;
use diesel::prelude::*;
use serde_json::json;
use values::{TaskId, UserId, WebhookId};

use crate::schema::{deliveries, webhooks};
use crate::status::DeliveryStatus;
use crate::webhooks::{NewWebhook, SigningSecret};

/// A webhook without its signing secret, which nobody but the sender needs.
#[derive(Debug, Clone, Queryable, Selectable)]
#[diesel(table_name = webhooks)]
#[diesel(check_for_backend(diesel::pg::Pg))]
pub(crate) struct Webhook {
    pub(crate) id: WebhookId,
    pub(crate) task_id: TaskId,
    pub(crate) registered_by: UserId,
    pub(crate) url: String,
    pub(crate) status: DeliveryStatus,
}

/// Stores a new webhook, and says so in the audit log.
pub(crate) fn insert(
    connection: &mut PgConnection,
    registered_by: UserId,
    webhook: &NewWebhook,
    entry: Entry,
) -> Result<Webhook, Error> {
    let id = WebhookId::generate();
    let row = (
        webhooks::id.eq(id),
        webhooks::task_id.eq(webhook.task),
        webhooks::registered_by.eq(registered_by),
        webhooks::url.eq(webhook.url.as_str()),
        webhooks::secret.eq(webhook.secret.as_ref().map(SigningSecret::expose)),
        webhooks::with_task_id.eq(webhook.with_task_id),
    );
    let insert = diesel::insert_into(webhooks::table)
        .values(row)
        .returning(Webhook::as_returning());
    let entry = entry.detail(json!({ "webhookId": id }));
    Ok(entry.record_with(insert).get_result(connection)?)
}

/// How many webhooks a task has.
pub(crate) fn count(connection: &mut PgConnection, task: TaskId) -> Result<i64, Error> {
    let of_task = webhooks::table.filter(webhooks::task_id.eq(task));
    Ok(of_task.count().get_result(connection)?)
}

/// The webhooks of a task, oldest first.
pub(crate) fn of_task(connection: &mut PgConnection, task: TaskId) -> Result<Vec<Webhook>, Error> {
    let rows = webhooks::table
        .filter(webhooks::task_id.eq(task))
        .order((webhooks::created, webhooks::id))
        .select(Webhook::as_select())
        .load(connection);
    Ok(rows?)
}

/// The webhook, if it exists.
pub(crate) fn find(connection: &mut PgConnection, id: WebhookId) -> Result<Option<Webhook>, Error> {
    let found = webhooks::table
        .find(id)
        .select(Webhook::as_select())
        .first(connection)
        .optional();
    Ok(found?)
}

/// Deletes webhooks with their deliveries, inside a transaction; how many there were.
pub(crate) fn delete(connection: &mut PgConnection, ids: &[WebhookId]) -> Result<usize, Error> {
    // The worker locks a delivery before its webhook; taking turns in the same order cannot end in a
    // deadlock.
    let _locked: Vec<i32> = deliveries::table
        .filter(deliveries::webhook_id.eq_any(ids))
        .order(deliveries::id)
        .for_update()
        .select(deliveries::attempts)
        .load(connection)?;
    let webhooks = webhooks::table.filter(webhooks::id.eq_any(ids));
    // A decision takes several in this order, too.
    let _locked: Vec<WebhookId> = webhooks
        .clone()
        .order(webhooks::id)
        .for_update()
        .select(webhooks::id)
        .load(connection)?;
    Ok(diesel::delete(webhooks).execute(connection)?)
}
