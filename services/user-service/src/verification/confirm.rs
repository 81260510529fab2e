use audit_log::{Actor, AuthMethod, RequestMeta};
use database::Connection;
use values::{Fingerprint, Secret, UserId};

use super::requests::{Proof, VerifyEmailRequest};
use crate::accounts::{self, User};
use crate::audit::{AuditAction, RequestActor};
use crate::back_off;
use crate::client_network::ClientNetwork;
use crate::code_limits::count_code_request;
use crate::context::Context;
use crate::error::UserError;
use crate::notifications::{CodeRequest, Kind, store as notifications};
use crate::passwords::store;
use crate::passwords::{count_attempt, reset_by_code};
use crate::sign_in::record_refusal;

const KIND: Kind = Kind::VerifyEmail;

/// Confirms an e-mail address by the code that was sent to it, if the caller also has the account or takes it over.
///
/// Without that, the owner of a mailbox who follows the link would confirm the account of a stranger who signed up with
/// the address, and the stranger could decide the owner's tasks.
#[tracing::instrument(skip_all, fields(user.id))]
pub(super) async fn confirm(
    context: &Context,
    request: VerifyEmailRequest,
    meta: RequestMeta,
) -> Result<(), UserError> {
    let code = request.code.fingerprint();
    match request.proof {
        Proof::Token(caller) => {
            let (id, epoch) = (caller.id(), caller.epoch());
            let confirm = move |connection: &mut Connection| {
                let user = lock_user(connection, code)?;
                if user.id != id {
                    return Err(UserError::OtherAccount);
                }
                if user.epoch != epoch {
                    return Err(UserError::CallerGone);
                }
                confirm_locked(connection, id, meta)
            };
            context.database.transaction(confirm).await
        }
        Proof::Password(password) => confirm_with_password(context, code, password, meta).await,
        Proof::NewPassword(password) => reset_by_code(context, (KIND, code), password, meta).await,
    }
}

/// Confirms the address of the account that has this password. A wrong one counts like a failed sign-in by the username.
async fn confirm_with_password(
    context: &Context,
    code: Fingerprint,
    password: Secret,
    meta: RequestMeta,
) -> Result<(), UserError> {
    let client = ClientNetwork::of(&meta);
    let find = move |connection: &mut Connection| {
        let id = notifications::find_user_by_code(connection, KIND, code, false)?;
        let id = id.ok_or(UserError::InvalidCode)?;
        store::find_credentials(connection, id)?.ok_or(UserError::InvalidCode)
    };
    let (credentials, attempt) = count_attempt(context, &client, find).await?;
    let id = credentials.id;
    tracing::Span::current().record("user.id", id.to_string());
    let stored = credentials.password_hash.clone();
    let hasher = &context.hasher;
    let verified = hasher.verify(&client, password, stored);
    let verified = verified.await.map_err(UserError::from);
    if !back_off::refund_on_error(&context.database, &attempt, verified).await? {
        record_refusal(context, Some(id), meta, "wrong-password").await?;
        return Err(UserError::WrongPassword);
    }
    let counted = attempt.clone();
    let confirm = move |connection: &mut Connection| {
        if lock_user(connection, code)?.id != id {
            return Err(UserError::InvalidCode);
        }
        if !store::has_credentials(connection, &credentials)? {
            return Err(UserError::WrongPassword);
        }
        back_off::delete_failures(connection, &counted)?;
        confirm_locked(connection, id, meta)
    };
    match context.database.transaction(confirm).await {
        // The password was changed meanwhile.
        Err(UserError::WrongPassword) => Err(UserError::WrongPassword),
        confirmed => back_off::refund_on_error(&context.database, &attempt, confirmed).await,
    }
}

/// The user of a code, locked until the transaction ends, so that the second of two concurrent requests finds the code
/// used.
fn lock_user(connection: &mut Connection, code: Fingerprint) -> Result<User, UserError> {
    let invalid = || UserError::InvalidCode;
    let id =
        notifications::find_user_by_code(connection, KIND, code, false)?.ok_or_else(invalid)?;
    let user = accounts::store::lock(connection, id)?.ok_or_else(invalid)?;
    if user.deletion_in_progress
        || notifications::find_user_by_code(connection, KIND, code, false)? != Some(id)
    {
        return Err(invalid());
    }
    Ok(user)
}

fn confirm_locked(
    connection: &mut Connection,
    id: UserId,
    meta: RequestMeta,
) -> Result<(), UserError> {
    let entry = AuditAction::EmailVerified.entry(Actor::User(id), id, meta);
    let entry = entry.authenticated_by(AuthMethod::VerificationCode);
    accounts::store::confirm_email(connection, id, entry)?;
    Ok(notifications::delete_codes(connection, id, &[KIND])?)
}

/// Queues another code for the user's e-mail address, for every channel. Earlier codes stay valid.
#[tracing::instrument(skip_all, fields(user.id = %id))]
pub(super) async fn resend(
    context: &Context,
    id: UserId,
    actor: RequestActor,
) -> Result<(), UserError> {
    let code = CodeRequest::new(context, KIND);
    let limits = context.settings.code_requests;
    if !code.can_be_sent() {
        return Err(UserError::CannotSendCodes);
    }
    let client = actor.client();
    let entry = actor.entry(AuditAction::VerificationRequested, id);
    let queue = move |connection: &mut Connection| {
        // Like a deletion, it locks the user before the counts.
        let user = accounts::store::lock(connection, id)?.ok_or(UserError::CallerGone)?;
        if user.deletion_in_progress {
            return Err(UserError::CallerGone);
        }
        if user.email_confirmed.is_some() {
            return Err(UserError::EmailConfirmed);
        }
        // A user who has not confirmed the address may be a stranger to its mailbox.
        let is_known = false;
        let wait = count_code_request(connection, limits, KIND, &user.email, &client, is_known)?;
        if let Some(wait) = wait {
            return Err(UserError::TooManyCodes(wait));
        }
        let (_, messages) = code.queue(connection, Some(id), None)?;
        entry.record(connection)?;
        Ok(messages)
    };
    let messages = context.database.transaction(queue).await?;
    context.notifications.send(messages);
    Ok(())
}
