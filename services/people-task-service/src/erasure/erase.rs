use std::collections::HashSet;

use audit_log::RequestMeta;
use database::{Connection, Database, Error};
use serde_json::json;
use values::UserId;

use crate::audit::AuditAction;
use crate::erasure::requests::EraseRequest;
use crate::erasure::store;
use crate::tasks::store::erasure::RequesterAddress;
use crate::{deliveries, tasks, webhooks};

/// Tasks that one transaction deletes at most, which takes about 0.1 seconds.
const TASKS: usize = 5_000;
/// If these have more webhooks, which are deleted with their deliveries, it deletes fewer tasks.
const WEBHOOKS_OF_TASKS: i64 = 5_000;
/// How many, each with at most 20 webhooks.
const TASKS_WITH_WEBHOOKS: usize = 250;
/// Webhooks of other users' tasks that one transaction deletes at most.
const WEBHOOKS: usize = 500;

/// The user whose data is deleted.
#[derive(Debug)]
struct ErasedUser {
    id: UserId,
    /// The addresses under which the user requested tasks.
    addresses: Vec<RequesterAddress>,
}

/// The result of one call.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Erased {
    /// The number of deleted tasks, and of deleted webhooks of other tasks.
    pub(crate) deleted: usize,
    /// Whether there is more to delete.
    pub(crate) more: bool,
    /// Whether there is more, but other transactions hold all of it at the moment.
    pub(crate) blocked: bool,
}

/// Deletes a batch of a user's data, in a short transaction that waits for no other one. Repeating it does no
/// harm. From then on no token of the user's creates, registers or decides anything, except tokens of another
/// incarnation of the user service's database.
///
/// # Errors
/// Only the database can fail.
#[tracing::instrument(skip_all, fields(user.id = %id))]
pub(crate) async fn erase(
    database: &Database,
    id: UserId,
    EraseRequest {
        addresses,
        incarnation,
    }: EraseRequest,
    meta: RequestMeta,
) -> Result<Erased, Error> {
    // Committed first, so that the user's requests do not wait for the deletion.
    let record = move |connection: &mut Connection| {
        store::record_erased_user(connection, id, incarnation.as_deref())
    };
    database.run(record).await?;
    let user = ErasedUser { id, addresses };
    let erased = database
        .transaction(move |connection| erase_in_transaction(connection, &user, meta))
        .await?;
    let Erased {
        deleted,
        more,
        blocked,
    } = erased;
    tracing::info!(deleted, more, blocked, "a deleted user's data was erased");
    Ok(erased)
}

fn erase_in_transaction(
    connection: &mut Connection,
    user: &ErasedUser,
    meta: RequestMeta,
) -> Result<Erased, Error> {
    let tasks = delete_tasks(connection, user)?;
    let webhooks = if tasks.more {
        Batch::default()
    } else {
        delete_webhooks(connection, user)?
    };
    let deleted = tasks.deleted + webhooks.deleted;
    if deleted > 0 {
        let entry = AuditAction::UserErased.on_user(user.id, meta);
        let detail = json!({"tasks": tasks.deleted, "webhooks": webhooks.deleted});
        entry.detail(detail).record(connection)?;
    }
    let mut more = tasks.more || webhooks.more;
    let mut progress = deleted > 0 || tasks.progress || webhooks.progress;
    if !more {
        let entries = audit_log::pseudonymise(connection, user.id)?;
        more = entries.more;
        progress |= entries.rows > 0;
    }
    Ok(Erased {
        deleted,
        more,
        blocked: more && !progress,
    })
}

/// A batch of tasks or webhooks.
#[derive(Default)]
struct Batch {
    deleted: usize,
    /// Whether something that belongs to them was deleted.
    progress: bool,
    more: bool,
}

/// Deletes tasks that the user created or requested, with their webhooks and deliveries.
///
/// The worker locks a delivery before its webhook. Locking in the same order here avoids deadlocks.
fn delete_tasks(connection: &mut Connection, user: &ErasedUser) -> Result<Batch, Error> {
    let locked =
        tasks::store::erasure::lock_tasks_of_user(connection, user.id, &user.addresses, TASKS)?;
    let mut ids: Vec<_> = locked.iter().map(|task| task.id).collect();
    if webhooks::store::are_more_than(connection, WEBHOOKS_OF_TASKS, &ids)? {
        ids.truncate(TASKS_WITH_WEBHOOKS);
    }
    let held: HashSet<_> = deliveries::store::lock_free_of_tasks(connection, &ids)?
        .into_iter()
        .chain(webhooks::store::lock_free_of_tasks(connection, &ids)?)
        .collect();
    ids.retain(|id| !held.contains(id));
    let Some(oldest) = locked.iter().map(|task| task.created).min() else {
        return Ok(Batch {
            more: tasks::store::erasure::has_tasks_of_user(connection, user.id, &user.addresses)?,
            ..Batch::default()
        });
    };
    // The holder of a task's secret may have been the user. The tasks' ids are not known after this.
    let entries = audit_log::forget_addresses(connection, &ids, oldest)?;
    if entries.more {
        return Ok(Batch {
            deleted: 0,
            progress: entries.rows > 0,
            more: true,
        });
    }
    tasks::store::erasure::delete(connection, &ids)?;
    Ok(Batch {
        deleted: ids.len(),
        progress: false,
        more: tasks::store::erasure::has_tasks_of_user(connection, user.id, &user.addresses)?,
    })
}

/// Deletes webhooks that the user registered for tasks of others, with their deliveries. A decision of such a task,
/// which adds deliveries, comes before or after.
fn delete_webhooks(connection: &mut Connection, user: &ErasedUser) -> Result<Batch, Error> {
    let mut rows = webhooks::store::load_of_user(connection, user.id, WEBHOOKS)?;
    let tasks: Vec<_> = rows.iter().map(|(_, task)| *task).collect();
    let locked = tasks::store::lock_free(connection, &tasks)?;
    rows.retain(|(_, task)| locked.contains(task));
    let mut ids: Vec<_> = rows.into_iter().map(|(id, _)| id).collect();
    let held = deliveries::store::lock_free_of_webhooks(connection, &ids)?;
    ids.retain(|id| !held.contains(id));
    let ids = webhooks::store::lock_free(connection, &ids)?;
    Ok(Batch {
        deleted: webhooks::store::delete(connection, &ids)?,
        progress: false,
        more: !webhooks::store::load_of_user(connection, user.id, 1)?.is_empty(),
    })
}
