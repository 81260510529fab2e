use database::Connection;
use messaging::Message;
use values::UserId;

use super::confirmation::Confirmation;
use super::requests::UpdateUserRequest;
use super::store::{self, User, UserChange};
use super::token::revoke_earlier_tokens;
use crate::audit::{AuditAction, RequestActor};
use crate::back_off::end_back_off;
use crate::context::Context;
use crate::credentials::store as credentials;
use crate::error::UserError;
use crate::password_rules::{Password, service_password};

/// Changes an account. Revokes the user's tokens if a value that they contain or depend on changes.
#[tracing::instrument(skip_all, fields(user.id = %id))]
pub(super) async fn update(
    context: &Context,
    id: UserId,
    mut request: UpdateUserRequest,
    actor: RequestActor,
) -> Result<User, UserError> {
    if actor.is_key() && request.password.is_some() {
        return Err(UserError::KeyNotAccepted);
    }
    let mut password_hash = None;
    if let Some(password) = request.password.take() {
        let find = move |connection: &mut Connection| {
            store::find_password_hash(connection, id)?.ok_or(UserError::NotFound("user"))
        };
        let current = context.database.run(find).await?;
        let (client, same) = (actor.client(), Password::from(password.clone()));
        // This runs outside of the transaction, so a concurrent change of the password does not count as the current one.
        if !context.hasher.verify(&client, same, current).await? {
            password_hash = Some(context.hasher.hash(&client, password).await?);
        }
    }
    let confirmation = Confirmation::required(context);
    let apply = move |connection: &mut Connection| {
        apply(connection, id, request, password_hash, confirmation, actor)
    };
    let (user, messages) = context.database.transaction(apply).await?;
    context.notifications.send(messages);
    revoke_earlier_tokens(context, &user);
    Ok(user)
}

fn apply(
    connection: &mut Connection,
    id: UserId,
    request: UpdateUserRequest,
    password_hash: Option<String>,
    confirmation: Option<Confirmation>,
    actor: RequestActor,
) -> Result<(User, Vec<Message>), UserError> {
    let can_demote = request.can_demote();
    let admins = can_demote.then(|| store::lock_active_admins(connection));
    let admins = admins.transpose()?;
    let user = store::lock(connection, id)?.ok_or(UserError::NotFound("user"))?;
    if user.deletion_in_progress {
        return Err(UserError::DeletionInProgress);
    }
    if let Some(admins) = admins {
        check_not_last_admin(&user, &admins)?;
    }
    let change = UserChange::between(&user, request, password_hash);
    if change.is_empty() {
        return Ok((user, Vec::new()));
    }
    check_change(&user, &change, actor.is_key())?;
    let was_trusted = user.email_confirmed.is_some() || confirmation.is_none();
    if change.moves_email && was_trusted {
        store::former_emails::insert_present(connection, id)?;
    }
    let confirmation = confirmation.filter(|_| change.moves_email && !user.is_service);
    let entry = actor.entry(AuditAction::UserUpdated, id);
    let entry = entry.fields(&change.field_names());
    let user = store::update(connection, id, &change, user.is_service, entry)?;
    if change.columns.password_hash.is_some() {
        credentials::end_keys(connection, id)?;
        end_back_off(connection, id, [&user.username, &user.email], None)?;
    }
    let queued = confirmation.map(|confirmation| confirmation.queue(connection, id));
    Ok((user, queued.transpose()?.unwrap_or_default()))
}

/// Refuses a password for a service account, and what no API key may change: names, and who is an administrator.
fn check_change(user: &User, change: &UserChange, by_key: bool) -> Result<(), UserError> {
    let columns = &change.columns;
    if user.is_service && columns.password_hash.is_some() {
        return Err(UserError::InvalidField("password", service_password()));
    }
    let has_admin = |scopes: &Vec<String>| scopes.iter().any(|scope| scope == auth::ADMIN_SCOPE);
    let makes_admin = columns.scope.as_ref().is_some_and(has_admin) && !has_admin(&user.scope);
    let is_beyond_keys = columns.username.is_some() || columns.email.is_some() || makes_admin;
    if by_key && is_beyond_keys {
        return Err(UserError::KeyNotAccepted);
    }
    Ok(())
}

/// Refuses a change after which the system would have no active administrator. `admins` is what
/// `store::lock_active_admins` returned.
pub(crate) fn check_not_last_admin(user: &User, admins: &[UserId]) -> Result<(), UserError> {
    if user.is_active_admin() && admins.iter().all(|admin| *admin == user.id) {
        return Err(UserError::LastAdmin);
    }
    Ok(())
}

/// Revokes the access tokens of a user, who can sign in again, and ends a person's API keys. Those of a service account have
/// to be ended one by one: it has nothing else.
#[tracing::instrument(skip_all, fields(user.id = %id))]
pub(super) async fn revoke_tokens(
    context: &Context,
    id: UserId,
    actor: RequestActor,
) -> Result<User, UserError> {
    let entry = actor.entry(AuditAction::TokensRevoked, id);
    let revoke = move |connection: &mut Connection| {
        let user =
            store::revoke_tokens(connection, id, entry)?.ok_or(UserError::NotFound("user"))?;
        if !user.is_service {
            credentials::end_keys(connection, id)?;
        }
        Ok::<_, UserError>(user)
    };
    let user = context.database.transaction(revoke).await?;
    revoke_earlier_tokens(context, &user);
    tracing::info!("a user's tokens were revoked");
    Ok(user)
}
