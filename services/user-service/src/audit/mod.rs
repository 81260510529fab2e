//! The audit log of accounts: the names of its actions and the administrators' list. Each capability
//! writes its entries with its changes.

pub(crate) mod routes;

use audit_log::{Actor, AuthMethod, Entry, RequestMeta, Subject};
use auth::Caller;
use values::{Names as _, UserId};

use crate::client_network::ClientNetwork;

values::names! {
    pub(crate) enum AuditAction {
        FirstAdminMade = "first-admin-made",
        UserCreated = "user-created",
        UserUpdated = "user-updated",
        TokensRevoked = "tokens-revoked",
        VerificationRequested = "verification-requested",
        EmailVerified = "email-verified",
        SignedIn = "signed-in",
        SignInRefused = "sign-in-refused",
        SessionStarted = "session-started",
        SessionEnded = "session-ended",
        SessionReplayed = "session-replayed",
        KeyCreated = "key-created",
        KeyEnded = "key-ended",
        KeyConfirmed = "key-confirmed",
        PasswordChanged = "password-changed",
        PasswordChangeRefused = "password-change-refused",
        PasswordResetRequested = "password-reset-requested",
        PasswordReset = "password-reset",
        DeletionRequested = "user-deletion-requested",
        DeletionCancelled = "user-deletion-cancelled",
        DeletionFailed = "user-deletion-failed",
        UserDeleted = "user-deleted",
    }
}

impl AuditAction {
    /// An entry that has no subject if `user` is `None`.
    pub(crate) fn entry(
        self,
        actor: Actor,
        user: impl Into<Option<UserId>>,
        meta: RequestMeta,
    ) -> Entry {
        let entry = Entry::new(self.name(), actor, meta);
        match user.into() {
            Some(user) => entry.on(Subject::User(user)),
            None => entry,
        }
    }
}

/// The caller of a request as the actor of an entry, with the request's metadata.
#[derive(Debug, Clone)]
pub(crate) struct RequestActor {
    actor: Actor,
    meta: RequestMeta,
}

impl RequestActor {
    pub(crate) fn new(caller: &Caller, meta: RequestMeta) -> Self {
        Self {
            actor: Actor::from(caller),
            meta,
        }
    }

    pub(crate) fn is_key(&self) -> bool {
        matches!(self.actor, Actor::UserKey(..) | Actor::AdminKey(..))
    }

    pub(crate) fn client(&self) -> ClientNetwork {
        ClientNetwork::of(&self.meta)
    }

    /// An entry about a user, authenticated by the caller's token.
    pub(crate) fn entry(self, action: AuditAction, user: UserId) -> Entry {
        let entry = action.entry(self.actor, user, self.meta);
        entry.authenticated_by(AuthMethod::Token)
    }
}

#[cfg(test)]
mod tests {
    use testkit::{TestDatabase, assert_allowed_texts};

    use values::Names as _;

    use super::AuditAction;

    #[test]
    fn the_constraint_of_the_table_lists_the_actions() {
        let database = TestDatabase::users(crate::MIGRATIONS);
        let names = AuditAction::ALL.iter().map(|action| action.name());
        assert_allowed_texts(&database, "users", "audit_log.action", names);
    }

    #[test]
    fn the_description_of_the_list_names_the_actions() {
        let text = include_str!("routes.rs");
        for action in AuditAction::ALL {
            let name = action.name();
            assert!(text.contains(&format!("`{name}`")), "{name}");
        }
    }
}
