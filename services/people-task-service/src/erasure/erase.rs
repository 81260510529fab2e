use audit_log::RequestMeta;
use database::{Connection, Database, Error};
use serde_json::json;
use values::{EmailAddress, TaskId, UserId};

use crate::audit::AuditAction;
use crate::erasure::requests::EraseRequest;
use crate::erasure::store;
use crate::{deliveries, tasks, webhooks};

/// How many rows one call deletes at most, so that no transaction is long.
const BATCH: usize = 2_000;

/// The result of one call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Erased {
    /// The number of deleted tasks, and of deleted webhooks of other tasks.
    pub(crate) deleted: usize,
    /// Whether there is more to delete.
    pub(crate) more: bool,
}

/// Deletes a batch of a user's data. Repeating it does no harm. From then on no token of the user's adds anything,
/// except tokens of another incarnation of the user service's database.
///
/// # Errors
/// Only the database can fail.
#[tracing::instrument(skip_all, fields(user.id = %user))]
pub(crate) async fn erase(
    database: &Database,
    user: UserId,
    EraseRequest {
        emails,
        incarnation,
    }: EraseRequest,
    meta: RequestMeta,
) -> Result<Erased, Error> {
    // Committed first, so that the user's requests do not wait for the deletion.
    let record = move |connection: &mut Connection| {
        store::record_erased_user(connection, user, incarnation.as_deref())
    };
    database.run(record).await?;
    let erased = database
        .transaction(move |connection| erase_in_transaction(connection, user, &emails, meta))
        .await?;
    tracing::info!(
        deleted = erased.deleted,
        more = erased.more,
        "a deleted user's data was erased"
    );
    Ok(erased)
}

fn erase_in_transaction(
    connection: &mut Connection,
    user: UserId,
    emails: &[EmailAddress],
    meta: RequestMeta,
) -> Result<Erased, Error> {
    let tasks = delete_tasks(connection, user, emails)?;
    let limit = BATCH.saturating_sub(tasks.len());
    let webhooks = webhooks::store::load_ids_of_user(connection, user, limit)?;
    webhooks::delete_with_deliveries(connection, &webhooks)?;
    let deleted = tasks.len() + webhooks.len();
    let more_addresses = store::forget_addresses(connection, user, &tasks)?;
    if deleted > 0 {
        let entry = AuditAction::UserErased.on_user(user, meta);
        let entry = entry.detail(json!({"tasks": tasks.len(), "webhooks": webhooks.len()}));
        entry.record(connection)?;
    }
    let more_entries = audit_log::pseudonymise(connection, user)?;
    Ok(Erased {
        deleted,
        more: more_addresses || more_entries || is_data_left(connection, user, emails)?,
    })
}

/// Deletes a batch of tasks with their webhooks and deliveries, and returns their ids.
///
/// The worker locks a delivery before its webhook. Locking in the same order here avoids deadlocks.
fn delete_tasks(
    connection: &mut Connection,
    user: UserId,
    emails: &[EmailAddress],
) -> Result<Vec<TaskId>, Error> {
    let ids = tasks::store::lock_tasks_of_user(connection, user, emails, BATCH)?;
    deliveries::store::lock_of_tasks(connection, &ids)?;
    tasks::store::delete(connection, &ids)?;
    Ok(ids)
}

fn is_data_left(
    connection: &mut Connection,
    user: UserId,
    emails: &[EmailAddress],
) -> Result<bool, Error> {
    let tasks = tasks::store::lock_tasks_of_user(connection, user, emails, 1)?;
    let webhooks = webhooks::store::load_ids_of_user(connection, user, 1)?;
    Ok(!tasks.is_empty() || !webhooks.is_empty())
}
