//! New passwords: by a user who knows the old one, by an administrator, or by a code.

use audit_log::{Actor, AuthMethod, RequestMeta};
use auth::Caller;
use database::Connection;
use serde_json::json;
use values::{Fingerprint, Names as _, Secret};

use super::requests::{ChangePasswordRequest, ResetPasswordRequest};
use super::store::{self, Credentials};
use crate::accounts::{self, revoke_earlier_tokens, sign_token};
use crate::audit::{AuditAction, RequestActor};
use crate::back_off::{self, AttemptKey, CountedAttempt, end_back_off, name_hash};
use crate::client_network::ClientNetwork;
use crate::context::Context;
use crate::credentials::store as credentials;
use crate::error::UserError;
use crate::notifications::{Kind, store as notifications};
use crate::password_rules::{NewPassword, service_password};

/// Changes the password of a user who knows the old one. Revokes all tokens and returns a new one.
///
/// A wrong old password counts like a failed sign-in by the username, so that a stolen token does not help to
/// guess the password.
#[tracing::instrument(skip_all, fields(user.id = %caller.id()))]
pub(super) async fn change(
    context: &Context,
    caller: &Caller,
    request: ChangePasswordRequest,
    actor: RequestActor,
) -> Result<Secret, UserError> {
    let (id, epoch, client) = (caller.id(), caller.epoch(), actor.client());
    let find = move |connection: &mut Connection| {
        let found = store::find_credentials(connection, id)?;
        let current = found.filter(|found| found.epoch == epoch);
        current.ok_or(UserError::CallerGone)
    };
    let (current, attempt) = count_attempt(context, &client, find).await?;
    let verify_and_hash = async {
        let old = request.old_password;
        let verified = context.hasher.verify(&client, old, current.password_hash);
        if !verified.await? {
            return Err(UserError::WrongOldPassword);
        }
        Ok(context.hasher.hash(&client, request.new_password).await?)
    };
    let hash = match verify_and_hash.await {
        Err(UserError::WrongOldPassword) => {
            return Err(refuse(context, caller, actor).await);
        }
        hash => back_off::refund_on_error(&context.database, &attempt, hash).await?,
    };
    let entry = actor.entry(AuditAction::PasswordChanged, id);
    let entry = entry.authenticated_by(AuthMethod::Password);
    let counted = attempt.clone();
    let update = move |connection: &mut Connection| {
        let unchanged = accounts::store::lock_unchanged(connection, id, epoch)?;
        unchanged.ok_or(UserError::CallerGone)?;
        let subject = store::update_password(connection, id, &hash, entry)?;
        let subject = subject.ok_or(UserError::CallerGone)?;
        back_off::forget_networks(connection, id, Some(&client))?;
        back_off::record_network(connection, id, &client)?;
        back_off::delete_failures(connection, &counted)?;
        Ok::<_, UserError>(subject)
    };
    let updated = context.database.transaction(update).await;
    let subject = back_off::refund_on_error(&context.database, &attempt, updated).await?;
    revoke_earlier_tokens(context, &subject.user);
    Ok(sign_token(context, &subject))
}

/// Finds the credentials of a user who claims to have the password, and counts the attempt by the username, unless the user
/// must wait.
pub(crate) async fn count_attempt(
    context: &Context,
    client: &ClientNetwork,
    find: impl FnOnce(&mut Connection) -> Result<Credentials, UserError> + Send + 'static,
) -> Result<(Credentials, CountedAttempt), UserError> {
    let client = client.clone();
    let count = move |connection: &mut Connection| {
        let credentials = find(connection)?;
        let name = name_hash(credentials.username.normalized());
        let key = AttemptKey::load(connection, name, Some(credentials.id), &client)?;
        Ok((credentials, back_off::count(connection, key)?))
    };
    context.database.transaction(count).await
}

async fn refuse(context: &Context, caller: &Caller, actor: RequestActor) -> UserError {
    let id = caller.id();
    let entry = actor.entry(AuditAction::PasswordChangeRefused, id);
    let entry = entry.detail(json!({"reason": "wrong-password"}));
    let record = move |connection: &mut Connection| {
        accounts::store::lock_against_deletion(connection, id)?.ok_or(UserError::CallerGone)?;
        entry.record(connection)?;
        Ok(UserError::WrongOldPassword)
    };
    let recorded = context.database.transaction(record).await;
    recorded.unwrap_or_else(|error| error)
}

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
        let user = notifications::find_user_by_code(connection, kind, code, true)?;
        user.ok_or(UserError::InvalidResetCode)
    };
    let id = context.database.run(find).await?;
    tracing::Span::current().record("user.id", id.to_string());
    let client = ClientNetwork::of(&meta);
    let hash = context.hasher.hash(&client, password).await?;
    let redeem = move |connection: &mut Connection| {
        // The lock makes the second of two concurrent requests find the code used.
        accounts::store::lock(connection, id)?.ok_or(UserError::InvalidResetCode)?;
        if notifications::find_user_by_code(connection, kind, code, true)? != Some(id) {
            return Err(UserError::InvalidResetCode);
        }
        let entry = |action: AuditAction| {
            let entry = action.entry(Actor::User(id), id, meta.clone());
            entry.authenticated_by(match kind {
                Kind::ForgotPassword => AuthMethod::ResetCode,
                Kind::VerifyEmail => AuthMethod::VerificationCode,
            })
        };
        let reset = entry(AuditAction::PasswordReset);
        let user = store::update_password(connection, id, &hash, reset)?
            .ok_or(UserError::InvalidResetCode)?
            .user;
        // The code was sent to the user's address, because a change of the address invalidates codes.
        accounts::store::confirm_email(connection, id, entry(AuditAction::EmailVerified))?;
        notifications::delete_codes(connection, id, Kind::ALL)?;
        credentials::end_keys(connection, id)?;
        let names = [&user.username, &user.email];
        end_back_off(connection, id, names, Some(&client))?;
        Ok(user)
    };
    let user = context.database.transaction(redeem).await?;
    revoke_earlier_tokens(context, &user);
    Ok(())
}
