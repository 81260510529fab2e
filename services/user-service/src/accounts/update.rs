use std::collections::BTreeSet;

use serde_json::Value;
use values::EmailAddress;

use super::fields::{ComponentTypes, Metadata, Plan, Scopes, Vendor};
use super::user::User;
use crate::hashing::NewPassword;

/// What an administrator asks to change. What is `None` stays.
#[derive(Debug, Default)]
pub(crate) struct UserUpdate {
    pub(crate) username: Option<EmailAddress>,
    pub(crate) email: Option<EmailAddress>,
    pub(crate) password: Option<NewPassword>,
    pub(crate) is_active: Option<bool>,
    pub(crate) plan: Option<Plan>,
    pub(crate) scope: Option<Scopes>,
    /// `Some(None)` takes the vendor away.
    pub(crate) vendor: Option<Option<Vendor>>,
    pub(crate) allowed_private_components: Option<ComponentTypes>,
    pub(crate) metadata: Option<Metadata>,
}

impl UserUpdate {
    /// Whether an administrator could lose the power by it.
    pub(super) fn may_demote(&self) -> bool {
        let is_admin = |scopes: &Scopes| scopes.0.iter().any(|scope| scope == auth::ADMIN_SCOPE);
        self.is_active == Some(false) || self.scope.as_ref().is_some_and(|scope| !is_admin(scope))
    }
}

/// What differs between an account and what it should be.
#[derive(Debug, Default)]
pub(super) struct UserChange {
    pub(super) username: Option<EmailAddress>,
    pub(super) email: Option<EmailAddress>,
    pub(super) password_hash: Option<String>,
    pub(super) is_active: Option<bool>,
    pub(super) plan: Option<Plan>,
    pub(super) scope: Option<Scopes>,
    pub(super) vendor: Option<Option<Vendor>>,
    pub(super) allowed_private_components: Option<ComponentTypes>,
    pub(super) metadata: Option<Metadata>,
    /// `Some(false)` when a new address awaits its confirmation.
    pub(super) email_verified: Option<bool>,
    /// Whether tokens that were signed before say something that is no longer so.
    pub(super) revokes_tokens: bool,
    /// Whether codes that were sent before went to a mailbox, or replace a password, of the past.
    pub(super) revokes_codes: bool,
}

impl UserChange {
    /// Compares an account with what was asked for. `password_hash` is the hash of a password that
    /// differs from the current one.
    pub(super) fn of(user: &User, update: UserUpdate, password_hash: Option<String>) -> Self {
        let as_given = |new: &EmailAddress, old: &EmailAddress| new.as_str() != old.as_str();
        let email_moves = update.email.as_ref().is_some_and(|new| *new != user.email);
        let renamed = update
            .username
            .as_ref()
            .is_some_and(|new| *new != user.username);
        let same_scopes = |new: &Scopes| {
            new.0.iter().collect::<BTreeSet<_>>() == user.scope.iter().collect::<BTreeSet<_>>()
        };
        let rescoped = update.scope.as_ref().is_some_and(|new| !same_scopes(new));
        let is_active = update.is_active.filter(|new| *new != user.is_active);
        Self {
            revokes_tokens: email_moves
                || renamed
                || rescoped
                || is_active.is_some()
                || password_hash.is_some(),
            revokes_codes: email_moves || password_hash.is_some(),
            email_verified: None,
            username: update.username.filter(|new| as_given(new, &user.username)),
            email: update.email.filter(|new| as_given(new, &user.email)),
            password_hash,
            is_active,
            plan: update.plan.filter(|new| new.0 != user.plan),
            scope: update.scope.filter(|new| new.0 != user.scope),
            vendor: update
                .vendor
                .filter(|new| new.as_ref().map(|new| &new.0) != user.vendor.as_ref()),
            allowed_private_components: update
                .allowed_private_components
                .filter(|new| new.0 != user.allowed_private_components),
            metadata: update
                .metadata
                .filter(|new| Value::Object(new.0.clone()) != user.metadata),
        }
    }

    /// The names of the fields that change, as the API has them.
    pub(super) fn fields(&self) -> Vec<&'static str> {
        let changes = [
            ("username", self.username.is_some()),
            ("email", self.email.is_some()),
            ("password", self.password_hash.is_some()),
            ("isActive", self.is_active.is_some()),
            ("plan", self.plan.is_some()),
            ("scope", self.scope.is_some()),
            ("vendor", self.vendor.is_some()),
            (
                "allowedPrivateComponents",
                self.allowed_private_components.is_some(),
            ),
            ("metadata", self.metadata.is_some()),
        ];
        let changed = changes.into_iter().filter(|(_, changes)| *changes);
        changed.map(|(name, _)| name).collect()
    }

    /// Whether the user's mail goes to another mailbox by it.
    pub(super) fn moves_email(&self, user: &User) -> bool {
        self.email.as_ref().is_some_and(|new| *new != user.email)
    }

    /// Whether there is nothing to write.
    pub(super) fn is_empty(&self) -> bool {
        !self.revokes_tokens
            && self.username.is_none()
            && self.email.is_none()
            && self.plan.is_none()
            && self.scope.is_none()
            && self.vendor.is_none()
            && self.allowed_private_components.is_none()
            && self.metadata.is_none()
    }
}

#[cfg(test)]
mod tests {
    use chrono::Utc;
    use serde_json::json;
    use values::{EmailAddress, FromText as _, UserId};

    use super::{UserChange, UserUpdate};
    use crate::accounts::fields::{Plan, Scopes, Vendor};
    use crate::accounts::user::User;

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
            email_verified: true,
            epoch: 0,
            created: Utc::now(),
            mtime: Utc::now(),
            last_sign_in: None,
        }
    }

    fn scopes(names: &[&str]) -> Option<Scopes> {
        Some(Scopes(
            names.iter().map(|name| (*name).to_owned()).collect(),
        ))
    }

    #[test]
    fn the_same_values_change_nothing() {
        let update = UserUpdate {
            username: Some(address("ada@example.com")),
            email: Some(address("ada@example.com")),
            is_active: Some(true),
            plan: Some(Plan("free".to_owned())),
            scope: scopes(&["user", "admin"]),
            vendor: Some(Some(Vendor(json!(["acme"])))),
            ..UserUpdate::default()
        };
        assert!(UserChange::of(&ada(), update, None).is_empty());
    }

    #[test]
    fn another_case_or_order_is_kept_and_revokes_nothing() {
        let update = UserUpdate {
            email: Some(address("Ada@example.com")),
            scope: scopes(&["admin", "user"]),
            ..UserUpdate::default()
        };
        let change = UserChange::of(&ada(), update, None);
        assert!(!change.is_empty() && !change.revokes_tokens && !change.revokes_codes);
        assert_eq!(change.email.unwrap().as_str(), "Ada@example.com");
    }

    fn changes(update: UserUpdate) -> UserChange {
        let change = UserChange::of(&ada(), update, None);
        assert!(!change.is_empty());
        change
    }

    #[test]
    fn what_a_token_says_or_rests_on_revokes_it() {
        let with = UserUpdate::default;
        let (email, username) = (
            Some(address("b@example.com")),
            Some(address("b@example.com")),
        );
        assert!(changes(UserUpdate { email, ..with() }).revokes_tokens);
        assert!(changes(UserUpdate { username, ..with() }).revokes_tokens);
        let (scope, is_active) = (scopes(&["user"]), Some(false));
        assert!(changes(UserUpdate { scope, ..with() }).revokes_tokens);
        assert!(
            changes(UserUpdate {
                is_active,
                ..with()
            })
            .revokes_tokens
        );
        let change = UserChange::of(&ada(), with(), Some("hash".to_owned()));
        assert!(change.revokes_tokens && change.revokes_codes);
    }

    #[test]
    fn what_no_token_says_revokes_nothing() {
        let with = UserUpdate::default;
        let (plan, vendor) = (Some(Plan("gold".to_owned())), Some(None));
        assert!(!changes(UserUpdate { plan, ..with() }).revokes_tokens);
        assert!(!changes(UserUpdate { vendor, ..with() }).revokes_tokens);
    }

    #[test]
    fn only_losing_the_scope_or_the_account_demotes() {
        let demotes = |scope, is_active| {
            UserUpdate {
                scope,
                is_active,
                ..UserUpdate::default()
            }
            .may_demote()
        };
        assert!(demotes(scopes(&["user"]), None) && demotes(None, Some(false)));
        assert!(!demotes(scopes(&["admin"]), Some(true)) && !demotes(None, None));
    }
}
