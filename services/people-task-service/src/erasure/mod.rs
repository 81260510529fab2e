//! Erasure of a deleted user's data, in steps that the deletion-worker repeats until nothing is left.
//!
//! What goes: the tasks that the user created or requested, with their webhooks, deliveries and attempts,
//! and the webhooks that the user registered for tasks of others. Tasks of others that the user was to
//! approve stay: they are the requester's data.

pub(crate) mod routes;
mod store;

use database::{Database, Error};
use values::{EmailAddress, UserId};

/// Rows that one call deletes at the most, so that no transaction is long.
const BATCH: usize = 2_000;

/// What one call did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Erased {
    /// Tasks, and webhooks for tasks of others.
    pub(crate) deleted: usize,
    /// Whether something is left.
    pub(crate) more: bool,
}

/// Deletes some of what a user left behind. Repeating it does no harm.
///
/// # Errors
/// Only the database can fail.
#[tracing::instrument(skip_all, fields(user.id = %user))]
pub(crate) async fn erase(
    database: &Database,
    user: UserId,
    emails: Vec<EmailAddress>,
) -> Result<Erased, Error> {
    let erased = database
        .transaction(move |connection| {
            let tasks = store::delete_tasks(connection, user, &emails, BATCH)?;
            let webhooks = store::delete_webhooks(connection, user, BATCH.saturating_sub(tasks))?;
            Ok::<_, Error>(Erased {
                deleted: tasks + webhooks,
                more: store::is_anything_left(connection, user, &emails)?,
            })
        })
        .await?;
    tracing::info!(
        deleted = erased.deleted,
        more = erased.more,
        "a deleted user's data was erased"
    );
    Ok(erased)
}
