//! What administrators do with the ticket of a deletion.

use database::Connection;
use values::{Secret, UserId};

use super::error::DeletionError;
use super::store::{self, Deletion};
use crate::accounts;
use crate::audit::{AuditAction, RequestActor};
use crate::context::Context;

/// Cancels a deletion that is in progress. What was deleted stays deleted, and the account stays inactive.
#[tracing::instrument(skip_all, fields(user.id = %user))]
pub(super) async fn cancel(
    context: &Context,
    user: UserId,
    ticket: Secret,
    actor: RequestActor,
) -> Result<Deletion, DeletionError> {
    let entry = actor.entry(AuditAction::DeletionCancelled, user);
    let cancel = move |connection: &mut Connection| {
        // Every transaction that locks a user and its deletion locks the user first.
        accounts::store::lock(connection, user)?;
        if let Some(cancelled) = store::update_to_cancelled(connection, user, &ticket, entry)? {
            return Ok(cancelled);
        }
        match store::find(connection, user, &ticket)? {
            Some(_) => Err(DeletionError::Ended),
            None => Err(DeletionError::UnknownTicket),
        }
    };
    context.database.transaction(cancel).await
}

/// The progress of a deletion.
pub(super) async fn status(
    context: &Context,
    user: UserId,
    ticket: Secret,
) -> Result<Deletion, DeletionError> {
    let find = move |connection: &mut Connection| {
        store::find(connection, user, &ticket)?.ok_or(DeletionError::UnknownTicket)
    };
    context.database.run(find).await
}
