use audit_log::AuthMethod;
use auth::Caller;
use database::Connection;
use serde_json::json;
use values::Secret;

use super::requests::ChangePasswordRequest;
use super::store;
use crate::accounts::{self, TokenSubject, revoke_earlier_tokens, sign_token};
use crate::audit::{AuditAction, RequestActor};
use crate::back_off::{self, AttemptKey, CountedAttempt, name_hash};
use crate::client_network::ClientNetwork;
use crate::context::Context;
use crate::error::UserError;
use crate::password_rules::Password;

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
    let client = &actor.client();
    let (current, attempt) = count_attempt(context, caller, client).await?;
    let hash = match verify_and_hash(context, client, request, current).await {
        Err(UserError::WrongOldPassword) => {
            return Err(refuse(context, caller, actor).await);
        }
        hash => back_off::refund_on_error(&context.database, &attempt, hash).await?,
    };
    let subject = update(context, caller, attempt, hash, actor).await?;
    revoke_earlier_tokens(context, &subject.user);
    Ok(sign_token(context, &subject)?)
}

/// Loads the hash of the current password, and counts the attempt unless the user must wait.
async fn count_attempt(
    context: &Context,
    caller: &Caller,
    client: &ClientNetwork,
) -> Result<(String, CountedAttempt), UserError> {
    let (id, epoch, client) = (caller.id(), caller.epoch(), client.clone());
    let count = move |connection: &mut Connection| {
        let found = store::find_credentials(connection, id)?;
        let current = found.filter(|found| found.epoch == epoch);
        let current = current.ok_or(UserError::CallerGone)?;
        let name = name_hash(current.username.normalized());
        let key = AttemptKey::load(connection, name, Some(id), &client)?;
        Ok((current.password_hash, back_off::count(connection, key)?))
    };
    context.database.transaction(count).await
}

async fn verify_and_hash(
    context: &Context,
    client: &ClientNetwork,
    request: ChangePasswordRequest,
    current: String,
) -> Result<String, UserError> {
    let old = Password::from(request.old_password);
    if !context.hasher.verify(client, old, current).await? {
        return Err(UserError::WrongOldPassword);
    }
    Ok(context.hasher.hash(client, request.new_password).await?)
}

/// Records a refused change and returns its error.
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

async fn update(
    context: &Context,
    caller: &Caller,
    attempt: CountedAttempt,
    hash: String,
    actor: RequestActor,
) -> Result<TokenSubject, UserError> {
    let (id, epoch, client) = (caller.id(), caller.epoch(), actor.client());
    let entry = actor.entry(AuditAction::PasswordChanged, id);
    let entry = entry.authenticated_by(AuthMethod::Password);
    let update = move |connection: &mut Connection| {
        let unchanged = accounts::store::lock_unchanged(connection, id, epoch)?;
        unchanged.ok_or(UserError::CallerGone)?;
        let subject = store::update_password(connection, id, &hash, entry)?;
        let subject = subject.ok_or(UserError::CallerGone)?;
        back_off::forget_networks(connection, id, Some(&client))?;
        back_off::record_network(connection, id, &client)?;
        back_off::delete_failures(connection, &attempt)?;
        Ok(subject)
    };
    context.database.transaction(update).await
}
