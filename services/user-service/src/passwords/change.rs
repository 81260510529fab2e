use audit_log::AuthMethod;
use database::Connection;
use values::{Secret, UserId};

use super::error::PasswordError;
use super::requests::ChangePasswordRequest;
use super::store;
use crate::accounts::{revoke_earlier_tokens, sign_token};
use crate::audit::{AuditAction, RequestActor};
use crate::client_network::ClientNetwork;
use crate::context::Context;
use crate::hashing::Password;

/// Changes the password of a user who knows the old one. Revokes all tokens and returns a new one.
#[tracing::instrument(skip_all, fields(user.id = %id))]
pub(super) async fn change(
    context: &Context,
    id: UserId,
    client: &ClientNetwork,
    request: ChangePasswordRequest,
    actor: RequestActor,
) -> Result<Secret, PasswordError> {
    let find = move |connection: &mut Connection| {
        store::find_password(connection, id)?.ok_or(PasswordError::CallerGone)
    };
    let (current, epoch) = context.database.run(find).await?;
    let old = Password::from(request.old_password);
    if !context.hasher.verify(client, old, Some(current)).await? {
        return Err(PasswordError::WrongPassword);
    }
    let hash = context.hasher.hash(client, request.new_password).await?;
    let entry = actor.entry(AuditAction::PasswordChanged, id);
    let entry = entry.authenticated_by(AuthMethod::Password);
    let update = move |connection: &mut Connection| {
        store::update_password(connection, id, Some(epoch), &hash, entry)?
            .ok_or(PasswordError::CallerGone)
    };
    let user = context.database.run(update).await?;
    revoke_earlier_tokens(context, &user);
    Ok(sign_token(context, &user)?)
}
