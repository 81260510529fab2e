//! What administrators do with deletions: start one, which gives a ticket, cancel it, and start those that failed again.

use database::Connection;
use messaging::Message;
use telemetry::RequestContext;
use values::{Secret, UserId};

use super::steps::Step;
use super::store::{self, DeletionProgress};
use crate::accounts::{self, check_not_last_admin, is_trusted, revoke_earlier_tokens};
use crate::audit::{AuditAction, RequestActor};
use crate::context::Context;
use crate::error::UserError;

/// Deletions that one transaction starts again.
const BATCH: usize = 100;
const MAX_PER_CALL: usize = 1_000;

/// Deactivates a user, revokes its tokens and stores the deletion. While a deletion of the user is in
/// progress, its ticket is returned again.
#[tracing::instrument(skip_all, fields(user.id = %id))]
pub(super) async fn start(
    context: &Context,
    id: UserId,
    actor: RequestActor,
) -> Result<Secret, UserError> {
    let request = RequestContext::current_or_fresh();
    let steps = Step::for_new_deletion(context.settings.flow_engine.is_some());
    let (row_request, verification) = (request.clone(), context.settings.email_verification);
    let entry = actor.entry(AuditAction::DeletionRequested, id);
    let insert = move |connection: &mut Connection| {
        let admins = accounts::store::lock_active_admins(connection)?;
        let user = accounts::store::lock(connection, id)?;
        if let Some(ticket) = store::find_ticket_in_progress(connection, id)? {
            return Ok((Secret::new(ticket), None));
        }
        let user = user.ok_or(UserError::NotFound("user"))?;
        check_not_last_admin(&user, &admins)?;
        let is_trusted = is_trusted(verification, &user);
        let user = accounts::store::deactivate(connection, id, entry)?;
        let ticket = Secret::random();
        let id = store::insert(connection, id, &ticket, &steps, is_trusted, &row_request)?;
        Ok::<_, UserError>((ticket, Some((id, user))))
    };
    let (ticket, new) = context.database.transaction(insert).await?;
    if let Some((id, user)) = new {
        revoke_earlier_tokens(context, &user);
        context.deletions.send([Message::new(id, request)]);
        metrics::counter!("deletions_started_total").increment(1);
    }
    Ok(ticket)
}

/// Cancels a deletion that is in progress. What was deleted stays deleted, and the account stays inactive.
#[tracing::instrument(skip_all, fields(user.id = %user))]
pub(super) async fn cancel(
    context: &Context,
    user: UserId,
    ticket: Secret,
    actor: RequestActor,
) -> Result<DeletionProgress, UserError> {
    let entry = actor.entry(AuditAction::DeletionCancelled, user);
    let cancel = move |connection: &mut Connection| {
        // Every transaction that locks a user and its deletion locks the user first.
        accounts::store::lock(connection, user)?;
        if let Some(cancelled) = store::update_to_cancelled(connection, user, &ticket, entry)? {
            return Ok(cancelled);
        }
        match store::find(connection, user, &ticket)? {
            Some(_) => Err(UserError::DeletionEnded),
            None => Err(UserError::NotFound("deletion ticket")),
        }
    };
    context.database.transaction(cancel).await
}

/// Starts failed deletions again, at the step that failed. Deletions of users who were reactivated since then stay as
/// they are, and so do those that would skip the flow engine. Returns how many were started, and whether there may be more.
#[tracing::instrument(skip_all)]
pub(super) async fn retry_failed(
    context: &Context,
    actor: RequestActor,
) -> Result<(usize, bool), UserError> {
    let (mut retried, with_engine) = (0, context.settings.flow_engine.is_some());
    while retried < MAX_PER_CALL {
        let actor = actor.clone();
        let entry = move |user| {
            let entry = actor.clone().entry(AuditAction::DeletionRequested, user);
            entry.detail(serde_json::json!({ "retried": true }))
        };
        let retry = move |connection: &mut Connection| {
            store::retry_failed(connection, BATCH, with_engine, entry)
        };
        let batch = context.database.transaction(retry).await?;
        retried += batch;
        if batch < BATCH {
            break;
        }
    }
    tracing::info!(retried, "failed deletions were started again");
    let more = move |connection: &mut Connection| store::has_retryable(connection, with_engine);
    let more = context.database.run(more).await?;
    Ok((retried, more))
}
