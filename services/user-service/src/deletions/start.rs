//! Starting, watching and cancelling a deletion.

use audit_log::Entry;
use diesel::PgConnection;
use listing::{Page, Paging};
use messaging::Message;
use telemetry::RequestContext;
use values::{DeletionId, Secret, UserId};

use super::error::DeletionError;
use super::store::Deletion;
use super::{Step, store};
use crate::accounts::{self, AccountError, User, check_not_last_admin, revoke_earlier_tokens};
use crate::audit::{AuditAction, RequestActor};
use crate::context::Context;

/// What a request for a deletion found or made.
enum Started {
    /// One is in progress already.
    Before(Secret),
    /// A new one, whose user is inactive from now on.
    Now {
        id: DeletionId,
        ticket: Secret,
        user: Box<User>,
    },
}

/// Deactivates a user, revokes its tokens and stores the deletion. Asking again while it is in progress
/// answers with the same ticket.
#[tracing::instrument(skip_all, fields(user.id = %id))]
pub(super) async fn start(
    context: &Context,
    id: UserId,
    actor: RequestActor,
) -> Result<Secret, DeletionError> {
    let request = RequestContext::current_or_fresh();
    let steps = Step::of_new_deletion(context.has_engine);
    let row_request = request.clone();
    let entry = actor.entry(AuditAction::DeletionRequested, id);
    let started = context
        .database
        .transaction(move |connection| begin(connection, id, &steps, &row_request, entry))
        .await?;
    match started {
        Started::Before(ticket) => Ok(ticket),
        Started::Now { id, ticket, user } => {
            revoke_earlier_tokens(context, &user);
            context.deletions.send([Message::new(id, request)]);
            metrics::counter!("deletions_started_total").increment(1);
            Ok(ticket)
        }
    }
}

fn begin(
    connection: &mut PgConnection,
    id: UserId,
    steps: &[Step],
    request: &RequestContext,
    entry: Entry,
) -> Result<Started, DeletionError> {
    let admins = accounts::store::lock_active_admins(connection)?;
    let user = accounts::store::lock(connection, id)?;
    if let Some(ticket) = store::running_ticket(connection, id)? {
        return Ok(Started::Before(Secret::new(ticket)));
    }
    let user = user.ok_or(AccountError::NotFound)?;
    check_not_last_admin(&user, &admins)?;
    let user = Box::new(accounts::store::deactivate(connection, user.id, entry)?);
    let ticket = Secret::random();
    let id = store::insert(connection, user.id, &ticket, steps, request)?;
    Ok(Started::Now { id, ticket, user })
}

/// How far a deletion is.
pub(super) async fn status(
    context: &Context,
    user: UserId,
    ticket: Secret,
) -> Result<Deletion, DeletionError> {
    let find = move |connection: &mut PgConnection| {
        store::find(connection, user, &ticket)?.ok_or(DeletionError::UnknownTicket)
    };
    context.database.run(find).await
}

/// Cancels a deletion that is in progress. What was deleted stays deleted, and the account inactive.
#[tracing::instrument(skip_all, fields(user.id = %user))]
pub(super) async fn cancel(
    context: &Context,
    user: UserId,
    ticket: Secret,
    actor: RequestActor,
) -> Result<Deletion, DeletionError> {
    let entry = actor.entry(AuditAction::DeletionCancelled, user);
    let cancel = move |connection: &mut PgConnection| {
        if let Some(cancelled) = store::cancel(connection, user, &ticket, entry)? {
            return Ok(cancelled);
        }
        match store::find(connection, user, &ticket)? {
            Some(_) => Err(DeletionError::Ended),
            None => Err(DeletionError::UnknownTicket),
        }
    };
    context.database.run(cancel).await
}

/// All deletions, newest first.
pub(super) async fn list(
    context: &Context,
    paging: Paging,
) -> Result<Page<Deletion>, DeletionError> {
    let list = move |connection: &mut PgConnection| {
        Ok::<_, DeletionError>(store::list(connection, paging)?)
    };
    Ok(paging.page(context.database.run(list).await?))
}
