use database::Error;
use diesel::prelude::*;
use values::{TaskId, UserId, WebhookId};

use crate::free_rows::lock_free_rows;
use crate::schema::webhooks;
use crate::status::DeliveryStatus;

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

/// Loads the ids of at most `limit` webhooks that a user registered, and of their tasks.
pub(crate) fn load_of_user(
    connection: &mut PgConnection,
    user: UserId,
    limit: usize,
) -> Result<Vec<(WebhookId, TaskId)>, Error> {
    let ids = webhooks::table
        .filter(webhooks::registered_by.eq(user))
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
    Ok(lock_free_rows!(connection, webhooks of type WebhookId, task_id in tasks))
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
