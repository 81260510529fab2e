use audit_log::{Actor, RequestMeta};
use database::Connection;
use values::EmailAddress;

use super::store;
use crate::audit::AuditAction;
use crate::back_off::is_known_network;
use crate::client_network::ClientNetwork;
use crate::code_limits::count_code_request;
use crate::context::Context;
use crate::error::UserError;
use crate::notifications::store::QueuedNotification;
use crate::notifications::{CodeRequest, Kind};
use crate::settings::EmailVerification;

const KIND: Kind = Kind::ForgotPassword;

/// Queues a code for the user with an e-mail address, for every channel.
///
/// Known and unknown addresses have the same statements, notifications and response. The worker that
/// sends a code generates it, so this function has no code to wait for or to leak.
#[tracing::instrument(skip_all)]
pub(super) async fn forgot(
    context: &Context,
    email: EmailAddress,
    meta: RequestMeta,
) -> Result<Vec<QueuedNotification>, UserError> {
    let code = CodeRequest::new(context, KIND);
    if !code.can_be_sent() {
        return Err(UserError::CannotSendResetCodes);
    }
    let (limits, counted) = (context.settings.code_requests, email.clone());
    let client = ClientNetwork::of(&meta);
    let all_are_trusted = context.settings.email_verification == EmailVerification::Off;
    let count = move |connection: &mut Connection| {
        // Someone who only claims the address may have signed in from anywhere.
        let found = store::find_user_by_email(connection, &counted)?;
        let trusted = found.filter(|(_, is_confirmed, _)| *is_confirmed || all_are_trusted);
        let user = trusted.map(|(id, ..)| id);
        let is_known = is_known_network(connection, user, &client)?;
        let wait = count_code_request(connection, limits, KIND, &counted, &client, is_known)?;
        wait.map_or(Ok(()), |wait| Err(UserError::TooManyResetCodes(wait)))
    };
    // A separate transaction, because a deletion locks the user before the counts.
    context.database.transaction(count).await?;
    let insert = move |connection: &mut Connection| {
        let (user, generation) = store::begin_code_request(connection, &email)?.unzip();
        let entry = AuditAction::PasswordResetRequested.entry(Actor::Anonymous, user, meta);
        entry.record(connection)?;
        code.queue(connection, user, generation)
    };
    let (queued, messages) = context.database.transaction(insert).await?;
    context.notifications.send(messages);
    Ok(queued)
}
