use database::Error;
use diesel::prelude::*;
use values::{EmailAddress, TaskId, UserId, WebhookId};

use crate::schema::{deliveries, tasks, webhooks};
use crate::webhooks::store as webhook_store;

/// At most so many tasks that the user created or requested, locked until the end of the transaction.
///
/// Each role is a statement of its own, in the order of its index: one statement for all of them would
/// read the whole table once nothing is left.
fn tasks_of(
    connection: &mut PgConnection,
    user: UserId,
    emails: &[EmailAddress],
    limit: usize,
) -> Result<Vec<TaskId>, Error> {
    let rows = |found: usize| i64::try_from(limit.saturating_sub(found)).unwrap_or(i64::MAX);
    let mut ids: Vec<TaskId> = tasks::table
        .filter(tasks::creator.eq(user))
        .order((tasks::created, tasks::id))
        .limit(rows(0))
        .select(tasks::id)
        .for_update()
        .load(connection)?;
    for email in emails {
        if ids.len() >= limit {
            break;
        }
        // A task that the user created as well would be found twice.
        let requested: Vec<TaskId> = tasks::table
            .filter(tasks::requester_key.eq(email.normalized()))
            .filter(tasks::creator.ne(user))
            .order((tasks::created, tasks::id))
            .limit(rows(ids.len()))
            .select(tasks::id)
            .for_update()
            .load(connection)?;
        ids.extend(requested);
    }
    Ok(ids)
}

/// At most so many webhooks that the user registered.
fn webhooks_of(
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

/// Deletes at most so many tasks that the user created or requested, with all that hangs on them; which
/// they were.
pub(crate) fn delete_tasks(
    connection: &mut PgConnection,
    user: UserId,
    emails: &[EmailAddress],
    limit: usize,
) -> Result<Vec<TaskId>, Error> {
    let ids = tasks_of(connection, user, emails, limit)?;
    // The worker locks a delivery before its webhook; taking turns in the same order cannot end in a
    // deadlock.
    let _locked: Vec<i32> = deliveries::table
        .filter(deliveries::task_id.eq_any(&ids))
        .order(deliveries::id)
        .for_update()
        .select(deliveries::attempts)
        .load(connection)?;
    diesel::delete(tasks::table.filter(tasks::id.eq_any(&ids))).execute(connection)?;
    Ok(ids)
}

/// Deletes at most so many webhooks that the user registered for tasks of others.
pub(crate) fn delete_webhooks(
    connection: &mut PgConnection,
    user: UserId,
    limit: usize,
) -> Result<usize, Error> {
    let ids = webhooks_of(connection, user, limit)?;
    webhook_store::delete(connection, &ids)?;
    Ok(ids.len())
}

/// Whether another call would delete something.
pub(crate) fn is_anything_left(
    connection: &mut PgConnection,
    user: UserId,
    emails: &[EmailAddress],
) -> Result<bool, Error> {
    let tasks = tasks_of(connection, user, emails, 1)?;
    Ok(!tasks.is_empty() || !webhooks_of(connection, user, 1)?.is_empty())
}

/// Takes the client addresses out of what the audit log says of the user and of these tasks; whether
/// there may be more of the user's.
pub(crate) fn forget_addresses(
    connection: &mut PgConnection,
    user: UserId,
    tasks: &[TaskId],
) -> Result<bool, Error> {
    // Who had a task's secret may have been the user. The tasks' identifiers are known only now.
    let tasks: Vec<&[u8]> = tasks
        .iter()
        .map(|task| task.as_bytes().as_slice())
        .collect();
    while !tasks.is_empty() && audit_log::forget_addresses(connection, &tasks)? {}
    Ok(audit_log::forget_addresses(connection, &[user.as_bytes()])?)
}
