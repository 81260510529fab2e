use std::collections::BTreeSet;

use database::{Connection, Error};
use messaging::Message;
use serde_json::Value;
use values::{EmailAddress, Secret, UserId};

use super::requests::{Scopes, UpdateUserRequest};
use super::store::{self, ChangedColumns, User, UserChange};
use super::token::revoke_earlier_tokens;
use crate::audit::{AuditAction, RequestActor};
use crate::back_off::{delete_all_failures, end_back_off};
use crate::context::Context;
use crate::credentials::store as credentials;
use crate::error::UserError;
use crate::notifications::CodeRequest;
use crate::password_rules::service_password;

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
        let (client, same) = (actor.client(), Secret::new(password.expose()));
        // This runs outside of the transaction, so a concurrent change of the password does not count as the current one.
        if !context.hasher.verify(&client, same, current).await? {
            password_hash = Some(context.hasher.hash(&client, password).await?);
        }
    }
    let confirmation = CodeRequest::for_new_address(context);
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
    confirmation: Option<CodeRequest>,
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
    if confirmation.is_some() {
        store::former_emails::distrust_new(connection, id)?;
    }
    let entry = actor.entry(AuditAction::UserUpdated, id);
    let entry = entry.fields(&change.field_names());
    let before = user;
    let user = store::update(connection, id, &change, before.is_service, entry)?;
    forget_given_up_names(connection, &before, &user)?;
    if change.columns.password_hash.is_some() {
        credentials::end_keys(connection, id)?;
        end_back_off(connection, id, [&user.username, &user.email], None)?;
    }
    let queued = confirmation.map(|code| code.queue(connection, Some(id), None));
    let (_, messages) = queued.transpose()?.unwrap_or_default();
    Ok((user, messages))
}

/// Deletes the failed sign-ins by names that a user gives up: a later deletion of the user finds those of the present names only.
fn forget_given_up_names(
    connection: &mut Connection,
    before: &User,
    after: &User,
) -> Result<(), Error> {
    let kept = [&after.username, &after.email];
    let mut given_up = vec![&before.username, &before.email];
    given_up.retain(|name| !kept.contains(name));
    if given_up.is_empty() {
        return Ok(());
    }
    delete_all_failures(connection, &given_up)
}

/// Refuses a password for a service account, and what no API key may change: names, and who is an administrator.
fn check_change(user: &User, change: &UserChange, by_key: bool) -> Result<(), UserError> {
    let columns = &change.columns;
    if user.is_service && columns.password_hash.is_some() {
        return Err(UserError::InvalidField("password", service_password()));
    }
    let has_admin = |scopes: &Vec<String>| scopes.iter().any(|scope| scope == auth::ADMIN_SCOPE);
    let will_be_admin = has_admin(columns.scope.as_ref().unwrap_or(&user.scope));
    // An inactive administrator who is activated can sign in again with a password from before.
    let makes_admin = will_be_admin && (!has_admin(&user.scope) || columns.is_active == Some(true));
    let is_beyond_keys = columns.username.is_some() || columns.email.is_some() || makes_admin;
    if by_key && is_beyond_keys {
        return Err(UserError::KeyNotAccepted);
    }
    Ok(())
}

/// Refuses a change after which the system would have no active administrator. `admins` is what
/// `store::lock_active_admins` returned.
pub(crate) fn check_not_last_admin(user: &User, admins: &[UserId]) -> Result<(), UserError> {
    if *admins == [user.id] {
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

impl UpdateUserRequest {
    /// Whether it can remove the administrator's role.
    fn can_demote(&self) -> bool {
        let is_admin = |scopes: &Scopes| scopes.0.iter().any(|scope| scope == auth::ADMIN_SCOPE);
        self.is_active == Some(false) || self.scope.as_ref().is_some_and(|scope| !is_admin(scope))
    }
}

impl UserChange {
    /// Compares an account with a request. `password_hash` is the hash of a password that differs from
    /// the current one.
    fn between(user: &User, request: UpdateUserRequest, password_hash: Option<String>) -> Self {
        let moves_email = request.email.as_ref().is_some_and(|new| *new != user.email);
        let password_changes = password_hash.is_some();
        let revokes_tokens = moves_email || password_changes || outdates_tokens(user, &request);
        let differs = |new: &EmailAddress, old: &EmailAddress| new.as_str() != old.as_str();
        let username = request.username.filter(|new| differs(new, &user.username));
        let email = request.email.filter(|new| differs(new, &user.email));
        let stored = |name: &EmailAddress| name.as_str().to_owned();
        let key = |name: &EmailAddress| name.normalized().to_owned();
        let plan = request.plan.map(|new| new.0);
        let scope = request.scope.map(|new| new.0);
        let vendor = request.vendor.map(|new| new.map(|new| new.0));
        let components = request.allowed_private_components.map(|new| new.0);
        let metadata = request.metadata.map(|new| Value::Object(new.0));
        Self {
            moves_email,
            revokes_tokens,
            revokes_codes: moves_email || password_changes,
            columns: ChangedColumns {
                username: username.as_ref().map(stored),
                username_key: username.as_ref().map(key),
                email: email.as_ref().map(stored),
                email_key: email.as_ref().map(key),
                password_hash,
                is_active: request.is_active.filter(|new| *new != user.is_active),
                plan: plan.filter(|new| *new != user.plan),
                scope: scope.filter(|new| *new != user.scope),
                vendor: vendor.filter(|new| *new != user.vendor),
                allowed_private_components: components
                    .filter(|new| *new != user.allowed_private_components),
                metadata: metadata.filter(|new| *new != user.metadata),
            },
        }
    }

    fn field_names(&self) -> Vec<&'static str> {
        let columns = &self.columns;
        let components = &columns.allowed_private_components;
        let changes = [
            ("username", columns.username.is_some()),
            ("email", columns.email.is_some()),
            ("password", columns.password_hash.is_some()),
            ("isActive", columns.is_active.is_some()),
            ("plan", columns.plan.is_some()),
            ("scope", columns.scope.is_some()),
            ("vendor", columns.vendor.is_some()),
            ("allowedPrivateComponents", components.is_some()),
            ("metadata", columns.metadata.is_some()),
        ];
        let changed = changes.into_iter().filter(|(_, changes)| *changes);
        changed.map(|(name, _)| name).collect()
    }

    fn is_empty(&self) -> bool {
        self.field_names().is_empty()
    }
}

/// Whether a request changes the username, the scopes or whether the user is active. The case of a name and the order of scopes
/// do not count.
fn outdates_tokens(user: &User, request: &UpdateUserRequest) -> bool {
    let set = |scopes: &[String]| scopes.iter().cloned().collect::<BTreeSet<_>>();
    let (username, scope) = (request.username.as_ref(), request.scope.as_ref());
    username.is_some_and(|new| *new != user.username)
        || scope.is_some_and(|new| set(&new.0) != set(&user.scope))
        || request.is_active.is_some_and(|new| new != user.is_active)
}

#[cfg(test)]
mod tests {
    use chrono::Utc;
    use serde_json::json;
    use values::{EmailAddress, FromText as _, Timestamp, UserId};

    use super::{UpdateUserRequest, UserChange};
    use crate::accounts::requests::{Plan, Scopes, Vendor};
    use crate::accounts::store::User;

    fn address(text: &str) -> EmailAddress {
        EmailAddress::from_text(text).unwrap()
    }

    fn ada() -> User {
        User {
            id: UserId::generate(),
            username: address("ada@example.com"),
            email: address("ada@example.com"),
            is_active: true,
            plan: "free".to_owned(),
            scope: vec!["user".to_owned(), "admin".to_owned()],
            vendor: Some(json!(["acme"])),
            allowed_private_components: Vec::new(),
            metadata: json!({}),
            email_confirmed: None,
            epoch: 0,
            created: Timestamp(Utc::now()),
            mtime: Timestamp(Utc::now()),
            last_sign_in: None,
            deletion_in_progress: false,
            is_service: false,
        }
    }

    fn scopes(names: &[&str]) -> Option<Scopes> {
        Some(Scopes(
            names.iter().map(|name| (*name).to_owned()).collect(),
        ))
    }

    #[test]
    fn the_same_values_are_no_change() {
        let update = UpdateUserRequest {
            username: Some(address("ada@example.com")),
            email: Some(address("ada@example.com")),
            is_active: Some(true),
            plan: Some(Plan("free".to_owned())),
            scope: scopes(&["user", "admin"]),
            vendor: Some(Some(Vendor(json!(["acme"])))),
            ..UpdateUserRequest::default()
        };
        assert!(UserChange::between(&ada(), update, None).is_empty());
    }

    #[test]
    fn another_case_or_order_is_stored_and_revokes_nothing() {
        let update = UpdateUserRequest {
            email: Some(address("Ada@example.com")),
            scope: scopes(&["admin", "user"]),
            ..UpdateUserRequest::default()
        };
        let change = UserChange::between(&ada(), update, None);
        assert!(!change.is_empty() && !change.revokes_tokens && !change.revokes_codes);
        assert_eq!(change.columns.email.unwrap(), "Ada@example.com");
    }

    fn changes(update: UpdateUserRequest) -> UserChange {
        let change = UserChange::between(&ada(), update, None);
        assert!(!change.is_empty());
        change
    }

    #[test]
    fn changes_of_what_a_token_depends_on_revoke_it() {
        let with = UpdateUserRequest::default;
        let (email, username) = (
            Some(address("b@example.com")),
            Some(address("b@example.com")),
        );
        assert!(changes(UpdateUserRequest { email, ..with() }).revokes_tokens);
        assert!(changes(UpdateUserRequest { username, ..with() }).revokes_tokens);
        let (scope, is_active) = (scopes(&["user"]), Some(false));
        assert!(changes(UpdateUserRequest { scope, ..with() }).revokes_tokens);
        assert!(
            changes(UpdateUserRequest {
                is_active,
                ..with()
            })
            .revokes_tokens
        );
        let change = UserChange::between(&ada(), with(), Some("hash".to_owned()));
        assert!(change.revokes_tokens && change.revokes_codes);
    }

    #[test]
    fn other_changes_revoke_nothing() {
        let with = UpdateUserRequest::default;
        let (plan, vendor) = (Some(Plan("gold".to_owned())), Some(None));
        assert!(!changes(UpdateUserRequest { plan, ..with() }).revokes_tokens);
        assert!(!changes(UpdateUserRequest { vendor, ..with() }).revokes_tokens);
    }

    #[test]
    fn only_removing_the_scope_or_deactivating_can_demote() {
        let demotes = |scope, is_active| {
            UpdateUserRequest {
                scope,
                is_active,
                ..UpdateUserRequest::default()
            }
            .can_demote()
        };
        assert!(demotes(scopes(&["user"]), None) && demotes(None, Some(false)));
        assert!(!demotes(scopes(&["admin"]), Some(true)) && !demotes(None, None));
    }
}
