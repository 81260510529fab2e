use database::Error;
use diesel::dsl::{exists, select};
use diesel::prelude::*;
use values::{EmailAddress, TaskId, UserId, WebhookId};

use crate::schema::{deliveries, tasks, webhooks};
use crate::webhooks::store as webhook_store;

/// The tasks that a user created or requested.
macro_rules! tasks_of {
    ($user:expr, $emails:expr) => {{
        let keys: Vec<_> = $emails.iter().map(EmailAddress::key).collect();
        tasks::table.filter(
            tasks::creator
                .eq($user)
                .or(tasks::requester_key.eq_any(keys)),
        )
    }};
}

/// Deletes at most so many tasks that the user created or requested, with all that hangs on them.
pub(crate) fn delete_tasks(
    connection: &mut PgConnection,
    user: UserId,
    emails: &[EmailAddress],
    limit: i64,
) -> Result<i64, Error> {
    let ids: Vec<TaskId> = tasks_of!(user, emails)
        .order(tasks::id)
        .limit(limit)
        .select(tasks::id)
        .for_update()
        .load(connection)?;
    // The worker locks a delivery before its webhook; taking turns in the same order cannot end in a
    // deadlock.
    let _locked: Vec<i32> = deliveries::table
        .filter(deliveries::task_id.eq_any(&ids))
        .order(deliveries::id)
        .for_update()
        .select(deliveries::attempts)
        .load(connection)?;
    let deleted =
        diesel::delete(tasks::table.filter(tasks::id.eq_any(&ids))).execute(connection)?;
    Ok(i64::try_from(deleted).unwrap_or(limit))
}

/// Deletes at most so many webhooks that the user registered for tasks of others.
pub(crate) fn delete_webhooks(
    connection: &mut PgConnection,
    user: UserId,
    limit: i64,
) -> Result<i64, Error> {
    let ids: Vec<WebhookId> = webhooks::table
        .filter(webhooks::registered_by.eq(user))
        .order(webhooks::id)
        .limit(limit)
        .select(webhooks::id)
        .load(connection)?;
    webhook_store::delete(connection, &ids)?;
    Ok(i64::try_from(ids.len()).unwrap_or(limit))
}

/// Whether another call would delete something.
pub(crate) fn is_anything_left(
    connection: &mut PgConnection,
    user: UserId,
    emails: &[EmailAddress],
) -> Result<bool, Error> {
    let of_user = webhooks::table.filter(webhooks::registered_by.eq(user));
    let left = select(exists(tasks_of!(user, emails)).or(exists(of_user))).get_result(connection);
    Ok(left?)
}
