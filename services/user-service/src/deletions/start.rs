use audit_log::Entry;
use database::Connection;
use messaging::Message;
use telemetry::RequestContext;
use values::{DeletionId, Secret, UserId};

use super::error::DeletionError;
use super::steps::Step;
use super::store;
use crate::accounts::confirmation::is_trusted;
use crate::accounts::{self, AccountError, User, check_not_last_admin, revoke_earlier_tokens};
use crate::audit::{AuditAction, RequestActor};
use crate::context::Context;
use crate::settings::EmailVerification;

enum Started {
    /// A deletion was in progress before.
    Before(Secret),
    /// A new deletion; its user is inactive from now on.
    Now {
        id: DeletionId,
        ticket: Secret,
        user: Box<User>,
    },
}

/// Deactivates a user, revokes its tokens and stores the deletion. While a deletion of the user is in
/// progress, its ticket is returned again.
#[tracing::instrument(skip_all, fields(user.id = %id))]
pub(super) async fn start(
    context: &Context,
    id: UserId,
    actor: RequestActor,
) -> Result<Secret, DeletionError> {
    let request = RequestContext::current_or_fresh();
    let steps = Step::for_new_deletion(context.has_engine);
    let (row_request, verification) = (request.clone(), context.email_verification);
    let entry = actor.entry(AuditAction::DeletionRequested, id);
    let started = context
        .database
        .transaction(move |connection| {
            insert(connection, id, &steps, verification, &row_request, entry)
        })
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

fn insert(
    connection: &mut Connection,
    id: UserId,
    steps: &[Step],
    verification: EmailVerification,
    request: &RequestContext,
    entry: Entry,
) -> Result<Started, DeletionError> {
    let admins = accounts::store::lock_active_admins(connection)?;
    let user = accounts::store::lock(connection, id)?;
    if let Some(ticket) = store::find_ticket_in_progress(connection, id)? {
        return Ok(Started::Before(Secret::new(ticket)));
    }
    let user = user.ok_or(AccountError::NotFound)?;
    check_not_last_admin(&user, &admins)?;
    let email_trusted = is_trusted(verification, &user);
    let user = Box::new(accounts::store::deactivate(connection, user.id, entry)?);
    let ticket = Secret::random();
    let id = store::insert(connection, user.id, &ticket, steps, email_trusted, request)?;
    Ok(Started::Now { id, ticket, user })
}
