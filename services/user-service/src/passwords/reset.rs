//! New passwords for people who do not give the old one: by an administrator, or by a code.

use audit_log::{Actor, AuthMethod, RequestMeta};
use database::Connection;
use values::{Fingerprint, Names as _, UserId};

use super::requests::ResetPasswordRequest;
use super::store;
use crate::accounts::{self, User, revoke_earlier_tokens};
use crate::audit::{AuditAction, RequestActor};
use crate::back_off::end_back_off;
use crate::client_network::ClientNetwork;
use crate::context::Context;
use crate::credentials::store as credentials;
use crate::error::UserError;
use crate::notifications::store::delete_pending;
use crate::notifications::{Kind, code_store};
use crate::password_rules::{NewPassword, service_password};

/// Sets the password of the user with an e-mail address, on behalf of an administrator.
#[tracing::instrument(skip_all, fields(user.id))]
pub(super) async fn reset(
    context: &Context,
    request: ResetPasswordRequest,
    actor: RequestActor,
) -> Result<(), UserError> {
    let ResetPasswordRequest { email, password } = request;
    let find = move |connection: &mut Connection| {
        let found = store::find_user_by_email(connection, &email)?;
        let (id, _, is_service) = found.ok_or(UserError::NotFound("user"))?;
        if is_service {
            return Err(UserError::InvalidField("password", service_password()));
        }
        Ok::<_, UserError>(id)
    };
    let id = context.database.run(find).await?;
    tracing::Span::current().record("user.id", id.to_string());
    let hash = context.hasher.hash(&actor.client(), password).await?;
    let entry = actor.entry(AuditAction::PasswordReset, id);
    let update = move |connection: &mut Connection| {
        let user = store::update_password(connection, id, &hash, entry)?
            .ok_or(UserError::NotFound("user"))?
            .user;
        credentials::end_keys(connection, id)?;
        end_back_off(connection, id, [&user.username, &user.email], None)?;
        Ok::<_, UserError>(user)
    };
    let user = context.database.transaction(update).await?;
    revoke_earlier_tokens(context, &user);
    Ok(())
}

/// Sets a new password by a code, and confirms the address that the code was sent to. Revokes all earlier codes and
/// tokens and ends the back-off.
#[tracing::instrument(skip_all, fields(user.id))]
pub(crate) async fn reset_by_code(
    context: &Context,
    (kind, code): (Kind, Fingerprint),
    password: NewPassword,
    meta: RequestMeta,
) -> Result<(), UserError> {
    // A cheap check first, so that an invalid code does not cost a hash.
    let find = move |connection: &mut Connection| {
        code_store::find_user(connection, kind, code)?.ok_or(UserError::InvalidResetCode)
    };
    let id = context.database.run(find).await?;
    tracing::Span::current().record("user.id", id.to_string());
    let client = ClientNetwork::of(&meta);
    let hash = context.hasher.hash(&client, password).await?;
    let redeem = move |connection: &mut Connection| {
        // The lock makes the second of two concurrent requests find the code used.
        accounts::store::lock(connection, id)?.ok_or(UserError::InvalidResetCode)?;
        if code_store::find_user(connection, kind, code)? != Some(id) {
            return Err(UserError::InvalidResetCode);
        }
        redeem(connection, id, &hash, &client, (kind, &meta))
    };
    let user = context.database.transaction(redeem).await?;
    revoke_earlier_tokens(context, &user);
    Ok(())
}

/// Sets the password of a locked user whose code is valid.
fn redeem(
    connection: &mut Connection,
    id: UserId,
    hash: &str,
    client: &ClientNetwork,
    (kind, meta): (Kind, &RequestMeta),
) -> Result<User, UserError> {
    let entry = |action: AuditAction| {
        let entry = action.entry(Actor::User(id), id, meta.clone());
        entry.authenticated_by(match kind {
            Kind::ForgotPassword => AuthMethod::ResetCode,
            Kind::VerifyEmail => AuthMethod::VerificationCode,
        })
    };
    let reset = entry(AuditAction::PasswordReset);
    let user = store::update_password(connection, id, hash, reset)?
        .ok_or(UserError::InvalidResetCode)?
        .user;
    // The code was sent to the user's address, because a change of the address invalidates codes.
    accounts::store::confirm_email(connection, id, entry(AuditAction::EmailVerified))?;
    code_store::delete(connection, id, Kind::ALL)?;
    delete_pending(connection, id)?;
    credentials::end_keys(connection, id)?;
    end_back_off(connection, id, [&user.username, &user.email], Some(client))?;
    Ok(user)
}
