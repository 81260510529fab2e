//! Batches of the tasks that a user created or requested, with their webhooks and deliveries.

use std::collections::HashSet;

use database::{Connection, Error};

use crate::erasure::{Batch, ErasedUser};
use crate::tasks::store::erasure as store;
use crate::{deliveries, webhooks};

/// Tasks that one transaction deletes at most, which takes about 0.05 seconds.
const TASKS: usize = 5_000;
/// If these have more webhooks, which are deleted with their deliveries, it deletes fewer tasks.
const WEBHOOKS_OF_TASKS: i64 = 5_000;
/// How many, each with at most 20 webhooks.
const TASKS_WITH_WEBHOOKS: usize = 250;

/// Deletes a full batch of tasks if no other transaction holds rows of them, and returns their number. Returns 0 if
/// there are fewer, and if they have too many webhooks or entries in the audit log.
///
/// It locks nothing before it deletes, so that each row is written once.
///
/// # Errors
/// The database fails, or a statement would have to wait for another transaction.
pub(super) fn delete_full_batch(
    connection: &mut Connection,
    user: &ErasedUser,
) -> Result<usize, Error> {
    let tasks = store::find_tasks_of_user(connection, user.id, &user.addresses, TASKS)?;
    let ids: Vec<_> = tasks.iter().map(|task| task.id).collect();
    let Some(oldest) = tasks.iter().map(|task| task.created).min() else {
        return Ok(0);
    };
    if ids.len() < TASKS
        || webhooks::store::are_more_than(connection, WEBHOOKS_OF_TASKS, &ids)?
        || audit_log::forget_addresses(connection, &ids, oldest)?.more
    {
        return Ok(0);
    }
    store::limit_waits(connection)?;
    store::delete(connection, &ids)
}

/// Deletes those of the oldest tasks of which no other transaction holds a row.
///
/// The worker locks a delivery before its webhook. Locking in the same order here avoids deadlocks.
pub(super) fn delete_free_tasks(
    connection: &mut Connection,
    user: &ErasedUser,
) -> Result<Batch, Error> {
    let locked = store::lock_tasks_of_user(connection, user.id, &user.addresses, TASKS)?;
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
            more: store::has_tasks_of_user(connection, user.id, &user.addresses)?,
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
    Ok(Batch {
        deleted: store::delete(connection, &ids)?,
        progress: false,
        more: store::has_tasks_of_user(connection, user.id, &user.addresses)?,
    })
}
