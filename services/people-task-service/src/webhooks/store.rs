use audit_log::Entry;
use database::Error;
use diesel::prelude::*;
use serde_json::json;
use values::{TaskId, UserId, WebhookId};

use crate::schema::webhooks;
use crate::status::DeliveryStatus;
use crate::webhooks::requests::{RegisterWebhookRequest, SigningSecret};

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
}

/// Inserts a webhook, with its audit entry.
pub(crate) fn insert(
    connection: &mut PgConnection,
    registered_by: UserId,
    webhook: &RegisterWebhookRequest,
    with_task_id: bool,
    entry: Entry,
) -> Result<Webhook, Error> {
    let id = WebhookId::generate();
    let row = (
        webhooks::id.eq(id),
        webhooks::task_id.eq(webhook.task),
        webhooks::registered_by.eq(registered_by),
        webhooks::url.eq(webhook.url.as_str()),
        webhooks::secret.eq(webhook.secret.as_ref().map(SigningSecret::expose)),
        webhooks::with_task_id.eq(with_task_id),
    );
    let insert = diesel::insert_into(webhooks::table)
        .values(row)
        .returning(Webhook::as_returning());
    let entry = entry.detail(json!({ "webhookId": id }));
    Ok(entry.record_with(insert).get_result(connection)?)
}

/// Counts the webhooks of a task.
pub(crate) fn count_of_task(connection: &mut PgConnection, task: TaskId) -> Result<i64, Error> {
    let of_task = webhooks::table.filter(webhooks::task_id.eq(task));
    Ok(of_task.count().get_result(connection)?)
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

/// Finds a webhook.
pub(crate) fn find(connection: &mut PgConnection, id: WebhookId) -> Result<Option<Webhook>, Error> {
    let found = webhooks::table
        .find(id)
        .select(Webhook::as_select())
        .first(connection)
        .optional();
    Ok(found?)
}

/// Loads the ids of at most `limit` webhooks that a user registered.
pub(crate) fn load_ids_of_user(
    connection: &mut PgConnection,
    user: UserId,
    limit: usize,
) -> Result<Vec<WebhookId>, Error> {
    let ids = webhooks::table
        .filter(webhooks::registered_by.eq(user))
        .order(webhooks::id)
        .limit(i64::try_from(limit).unwrap_or(i64::MAX))
        .select(webhooks::id)
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
