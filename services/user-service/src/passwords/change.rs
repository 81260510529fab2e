//! Changing a password by its owner, and setting it by an administrator.

use audit_log::AuthMethod;
use diesel::PgConnection;
use values::{EmailAddress, Secret, UserId};

use super::error::PasswordError;
use super::store;
use crate::accounts::{User, revoke_earlier_tokens, sign_token};
use crate::audit::{Action, Author};
use crate::context::Context;
use crate::hashing::{NewPassword, Password};
use crate::sign_in::{SignInName, store::forget_all_failures};

/// Changes the password of somebody who knows the old one. All tokens are revoked; the new one that
/// is returned is the only one that counts.
#[tracing::instrument(skip_all, fields(user.id = %id))]
pub(super) async fn change(
    context: &Context,
    author: Author,
    id: UserId,
    old: Secret,
    new: NewPassword,
) -> Result<Secret, PasswordError> {
    let (current, epoch) = context
        .database
        .run(move |connection| store::password(connection, id)?.ok_or(PasswordError::CallerGone))
        .await?;
    if !context
        .hasher
        .verify(Password::from(old), Some(current))
        .await?
    {
        return Err(PasswordError::WrongPassword);
    }
    let hash = context.hasher.hash(new).await?;
    let entry = author.entry(Action::PasswordChanged, id);
    let entry = entry.authenticated_by(AuthMethod::Password);
    let user = context
        .database
        .run(move |connection| {
            store::set_password(connection, id, Some(epoch), &hash, entry)?
                .ok_or(PasswordError::CallerGone)
        })
        .await?;
    revoke_earlier_tokens(context, &user);
    Ok(sign_token(context, &user)?)
}

/// Sets the password of the user with an e-mail address.
#[tracing::instrument(skip_all, fields(user.id))]
pub(super) async fn reset(
    context: &Context,
    author: Author,
    email: EmailAddress,
    new: NewPassword,
) -> Result<(), PasswordError> {
    let id = context
        .database
        .run(move |connection| {
            store::user_with_email(connection, &email)?.ok_or(PasswordError::UnknownEmail)
        })
        .await?;
    tracing::Span::current().record("user.id", id.to_string());
    let hash = context.hasher.hash(new).await?;
    let entry = author.entry(Action::PasswordReset, id);
    let set = move |connection: &mut PgConnection| {
        let user = store::set_password(connection, id, None, &hash, entry)?
            .ok_or(PasswordError::UnknownEmail)?;
        end_back_off(connection, &user)?;
        Ok::<_, PasswordError>(user)
    };
    let user = context.database.transaction(set).await?;
    revoke_earlier_tokens(context, &user);
    Ok(())
}

/// Whoever has a new password need not wait for the failures with the old one.
pub(super) fn end_back_off(
    connection: &mut PgConnection,
    user: &User,
) -> Result<(), diesel::result::Error> {
    let names = [user.username.as_str(), user.email.as_str()];
    let accounts = names.map(|name| SignInName::new(name).account());
    forget_all_failures(connection, &accounts)
}
