//! Erasure of a deleted user's data, in steps that the deletion-worker repeats until nothing is left.
//!
//! What goes: the tasks that the user created or requested, with their webhooks, deliveries and attempts,
//! and the webhooks that the user registered for tasks of others. Tasks of others that the user was to
//! approve stay: they are the requester's data. In the audit log a pseudonym takes the identifier's place,
//! and client addresses go.

pub(crate) mod routes;
mod store;

use audit_log::RequestMeta;
use database::{Database, Error};
use diesel::PgConnection;
use serde_json::json;
use values::{EmailAddress, UserId};

use crate::audit::Action;

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
    origin: RequestMeta,
) -> Result<Erased, Error> {
    let erased = database
        .transaction(move |connection| in_transaction(connection, user, &emails, origin))
        .await?;
    tracing::info!(
        deleted = erased.deleted,
        more = erased.more,
        "a deleted user's data was erased"
    );
    Ok(erased)
}

fn in_transaction(
    connection: &mut PgConnection,
    user: UserId,
    emails: &[EmailAddress],
    origin: RequestMeta,
) -> Result<Erased, Error> {
    let tasks = store::delete_tasks(connection, user, emails, BATCH)?;
    let webhooks = store::delete_webhooks(connection, user, BATCH.saturating_sub(tasks.len()))?;
    let deleted = tasks.len() + webhooks;
    let more_addresses = store::forget_addresses(connection, user, &tasks)?;
    if deleted > 0 {
        let entry = Action::UserErased.entry_of_service(user, origin);
        let entry = entry.detail(json!({"tasks": tasks.len(), "webhooks": webhooks}));
        entry.record(connection)?;
    }
    let more_entries = audit_log::pseudonymise(connection, user).map_err(Error::from)?;
    Ok(Erased {
        deleted,
        more: more_addresses || more_entries || store::is_anything_left(connection, user, emails)?,
    })
}
