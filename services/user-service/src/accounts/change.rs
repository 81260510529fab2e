use std::collections::BTreeSet;

use serde_json::Value;
use values::EmailAddress;

use super::requests::{Scopes, UpdateUserRequest};
use super::store::{ChangedColumns, User, UserChange};

impl UpdateUserRequest {
    /// Whether it can remove the administrator's role.
    pub(super) fn can_demote(&self) -> bool {
        let is_admin = |scopes: &Scopes| scopes.0.iter().any(|scope| scope == auth::ADMIN_SCOPE);
        self.is_active == Some(false) || self.scope.as_ref().is_some_and(|scope| !is_admin(scope))
    }
}

impl UserChange {
    /// Compares an account with a request. `password_hash` is the hash of a password that differs from
    /// the current one.
    pub(super) fn between(
        user: &User,
        request: UpdateUserRequest,
        password_hash: Option<String>,
    ) -> Self {
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

    pub(super) fn field_names(&self) -> Vec<&'static str> {
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

    pub(super) fn is_empty(&self) -> bool {
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
    use values::{EmailAddress, FromText as _, UserId};

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
            created: Utc::now(),
            mtime: Utc::now(),
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
