use audit_log::{Actor, RequestMeta};
use database::Connection;
use messaging::Message;
use telemetry::RequestContext;
use values::EmailAddress;

use super::error::PasswordError;
use super::rate_limit::count_code_request;
use super::store;
use crate::audit::AuditAction;
use crate::client_network::ClientNetwork;
use crate::context::Context;
use crate::notifications::store::QueuedNotification;
use crate::notifications::{self, Channel, Kind};

/// Queues a code for the user with an e-mail address, for every channel.
///
/// Known and unknown addresses have the same statements, notifications and response. The worker that
/// sends a code generates it, so this function has no code to wait for or to leak.
///
/// # Errors
/// There is no channel, there were too many requests for this address or from this client, or the
/// database failed.
#[tracing::instrument(skip_all)]
pub(super) async fn forgot(
    context: &Context,
    email: EmailAddress,
    client_network: ClientNetwork,
    meta: RequestMeta,
) -> Result<Vec<QueuedNotification>, PasswordError> {
    let channels = Channel::configured(&context.channels);
    if channels.is_empty() {
        return Err(PasswordError::NotConfigured);
    }
    let (limits, counted) = (context.code_requests, email.clone());
    let count = move |connection: &mut Connection| {
        let kind = Kind::ForgotPassword;
        match count_code_request(connection, limits, kind, &counted, &client_network)? {
            Some(wait) => Err(PasswordError::TooManyRequests(wait)),
            None => Ok(()),
        }
    };
    // A separate transaction, because a deletion locks the user before the counts.
    context.database.transaction(count).await?;
    let request = RequestContext::current_or_fresh();
    let row_request = request.clone();
    let insert = move |connection: &mut Connection| {
        let recipient = store::invalidate_codes(connection, &email)?;
        let action = AuditAction::PasswordResetRequested;
        let user = recipient.map(|recipient| recipient.user);
        let entry = action.entry_about(Actor::Anonymous, user, meta);
        entry.record(connection)?;
        let kind = Kind::ForgotPassword;
        notifications::store::insert(connection, kind, recipient, &channels, &row_request)
    };
    let queued = context.database.transaction(insert).await?;
    let messages = queued
        .iter()
        .map(|message| Message::new(message.id, request.clone()));
    context.notifications.send(messages);
    Ok(queued)
}
