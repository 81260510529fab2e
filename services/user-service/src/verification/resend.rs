use database::Connection;
use messaging::Message;
use values::UserId;

use crate::accounts;
use crate::accounts::confirmation::Confirmation;
use crate::audit::{AuditAction, RequestActor};
use crate::client_network::ClientNetwork;
use crate::context::Context;
use crate::error::UserError;
use crate::notifications::{Channel, Kind};
use crate::passwords::{CodeRequest, count_code_request};
use crate::settings::CodeRequestSettings;

/// Queues another code for the user's e-mail address, for every channel. Earlier codes stay valid.
#[tracing::instrument(skip_all, fields(user.id = %id))]
pub(super) async fn resend(
    context: &Context,
    id: UserId,
    actor: RequestActor,
) -> Result<(), UserError> {
    let (confirmation, limits) = (Confirmation::requested(context), context.code_requests);
    if Channel::configured(&context.channels).is_empty() {
        return Err(UserError::CannotSendCodes);
    }
    let client = actor.client();
    let entry = actor.entry(AuditAction::VerificationRequested, id);
    let queue = move |connection: &mut Connection| {
        let messages = queue(connection, id, &confirmation, limits, &client)?;
        entry.record(connection)?;
        Ok::<_, UserError>(messages)
    };
    let messages = context.database.transaction(queue).await?;
    context.notifications.send(messages);
    Ok(())
}

/// Must run in a transaction, so that a refused request does not count. Like a deletion, it locks the user before the
/// counts.
fn queue(
    connection: &mut Connection,
    id: UserId,
    confirmation: &Confirmation,
    limits: CodeRequestSettings,
    client: &ClientNetwork,
) -> Result<Vec<Message>, UserError> {
    let user = accounts::store::lock(connection, id)?.ok_or(UserError::CallerGone)?;
    if user.deletion_in_progress {
        return Err(UserError::CallerGone);
    }
    if user.email_confirmed.is_some() {
        return Err(UserError::EmailConfirmed);
    }
    let request = CodeRequest {
        kind: Kind::VerifyEmail,
        email: &user.email,
        client,
        // A user who has not confirmed the address may be a stranger to its mailbox.
        from_known_network: false,
    };
    if let Some(wait) = count_code_request(connection, limits, request)? {
        return Err(UserError::TooManyCodes(wait));
    }
    Ok(confirmation.queue(connection, id)?)
}
