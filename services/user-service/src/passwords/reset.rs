use database::Connection;

use super::error::PasswordError;
use super::requests::ResetPasswordRequest;
use super::store;
use crate::accounts::revoke_earlier_tokens;
use crate::audit::{AuditAction, RequestActor};
use crate::back_off::end_back_off;
use crate::client_network::ClientNetwork;
use crate::context::Context;

/// Sets the password of the user with an e-mail address, on behalf of an administrator.
#[tracing::instrument(skip_all, fields(user.id))]
pub(super) async fn reset(
    context: &Context,
    client: &ClientNetwork,
    request: ResetPasswordRequest,
    actor: RequestActor,
) -> Result<(), PasswordError> {
    let ResetPasswordRequest { email, password } = request;
    let find = move |connection: &mut Connection| {
        store::find_user_by_email(connection, &email)?.ok_or(PasswordError::UnknownEmail)
    };
    let id = context.database.run(find).await?;
    tracing::Span::current().record("user.id", id.to_string());
    let hash = context.hasher.hash(client, password).await?;
    let entry = actor.entry(AuditAction::PasswordReset, id);
    let update = move |connection: &mut Connection| {
        let user = store::update_password(connection, id, None, &hash, entry)?
            .ok_or(PasswordError::UnknownEmail)?
            .user;
        end_back_off(connection, id, [&user.username, &user.email], None)?;
        Ok::<_, PasswordError>(user)
    };
    let user = context.database.transaction(update).await?;
    revoke_earlier_tokens(context, &user);
    Ok(())
}
