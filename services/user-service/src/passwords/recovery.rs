//! Recovering a forgotten password: a code on its way to every channel, and the code's use.
//!
//! A known and an unknown e-mail address have the same statements, the same messages and the same
//! answer. The code is made by the worker that sends it; here is neither code nor waiting.

use audit_log::{Actor, AuthMethod, RequestMeta};
use diesel::PgConnection;
use messaging::Message;
use telemetry::RequestContext;
use values::{EmailAddress, Secret};

use super::change::end_back_off;
use super::error::PasswordError;
use super::limits::count_request;
use super::store;
use crate::accounts::{self, revoke_earlier_tokens};
use crate::audit::Action;
use crate::context::Context;
use crate::hashing::NewPassword;
use crate::notifications::store::{Kind, Queued, drop_pending_forgot_password};
use crate::notifications::{self, Channel};

/// Has a code sent to the user with an e-mail address, by every channel.
///
/// # Errors
/// No channel, too many requests for this address or from this client, or no database.
#[tracing::instrument(skip_all)]
pub(super) async fn forgot(
    context: &Context,
    email: EmailAddress,
    client_address: String,
    origin: RequestMeta,
) -> Result<Vec<Queued>, PasswordError> {
    let channels = Channel::configured(&context.channels);
    if channels.is_empty() {
        return Err(PasswordError::NotConfigured);
    }
    let (limits, wanted) = (context.code_requests, email.clone());
    let count = move |connection: &mut PgConnection| {
        count_request(connection, limits, &wanted, &client_address)
    };
    // Counted apart from the rest: a deletion takes the user's row first and the counts after it.
    context.database.transaction(count).await?;
    let request = RequestContext::current_or_fresh();
    let row_request = request.clone();
    let store = move |connection: &mut PgConnection| {
        let user = store::begin_recovery(connection, &email)?;
        let action = Action::PasswordResetRequested;
        let entry = action.entry_about(Actor::Anonymous, user, origin);
        entry.record(connection)?;
        let queued = notifications::store::insert(
            connection,
            Kind::ForgotPassword,
            user,
            &channels,
            &row_request,
        )?;
        Ok::<_, PasswordError>(queued)
    };
    let queued = context.database.transaction(store).await?;
    let messages = queued
        .iter()
        .map(|message| Message::new(message.id, request.clone()));
    context.notifications.send(messages);
    Ok(queued)
}

/// Sets a new password by a code. Afterwards no code, no token and no waiting of before is left.
#[tracing::instrument(skip_all, fields(user.id))]
pub(super) async fn reset_forgotten(
    context: &Context,
    code: Secret,
    new: NewPassword,
    origin: RequestMeta,
) -> Result<(), PasswordError> {
    let code = code.fingerprint();
    // A cheap look first, so that junk does not cost a hash.
    let id = context
        .database
        .run(move |connection| {
            store::user_of_code(connection, code)?.ok_or(PasswordError::InvalidCode)
        })
        .await?;
    tracing::Span::current().record("user.id", id.to_string());
    let hash = context.hasher.hash(new).await?;
    let entry = Action::PasswordReset.entry(Actor::User(id), id, origin);
    let entry = entry.authenticated_by(AuthMethod::ResetCode);
    let redeem = move |connection: &mut PgConnection| {
        // Of two who use the code at once, the second one finds it used.
        accounts::store::lock(connection, id)?.ok_or(PasswordError::InvalidCode)?;
        if store::user_of_code(connection, code)? != Some(id) {
            return Err(PasswordError::InvalidCode);
        }
        let user = store::set_password(connection, id, None, &hash, entry)?
            .ok_or(PasswordError::InvalidCode)?;
        store::delete_codes(connection, id)?;
        drop_pending_forgot_password(connection, id)?;
        end_back_off(connection, &user)?;
        Ok(user)
    };
    let user = context.database.transaction(redeem).await?;
    revoke_earlier_tokens(context, &user);
    Ok(())
}
