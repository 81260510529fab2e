//! The audit log of accounts: the names of its actions and the administrators' view. Each capability
//! writes its entries with its changes.

pub(crate) mod routes;

use audit_log::{Actor, Entry, RequestMeta, Subject};
use auth::Caller;
use values::UserId;

/// An action of the audit log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AuditAction {
    FirstAdminMade,
    UserCreated,
    UserUpdated,
    EmailVerified,
    SignedIn,
    SignInRefused,
    PasswordChanged,
    PasswordResetRequested,
    PasswordReset,
    DeletionRequested,
    DeletionCancelled,
    DeletionFailed,
    UserDeleted,
}

impl AuditAction {
    /// The name in the table. A constraint lists all of them.
    fn name(self) -> &'static str {
        match self {
            Self::FirstAdminMade => "first-admin-made",
            Self::UserCreated => "user-created",
            Self::UserUpdated => "user-updated",
            Self::EmailVerified => "email-verified",
            Self::SignedIn => "signed-in",
            Self::SignInRefused => "sign-in-refused",
            Self::PasswordChanged => "password-changed",
            Self::PasswordResetRequested => "password-reset-requested",
            Self::PasswordReset => "password-reset",
            Self::DeletionRequested => "user-deletion-requested",
            Self::DeletionCancelled => "user-deletion-cancelled",
            Self::DeletionFailed => "user-deletion-failed",
            Self::UserDeleted => "user-deleted",
        }
    }

    /// An entry about a user.
    pub(crate) fn entry(self, actor: Actor, user: UserId, meta: RequestMeta) -> Entry {
        self.entry_about(actor, Some(user), meta)
    }

    /// An entry that has no subject if `user` is `None`.
    pub(crate) fn entry_about(
        self,
        actor: Actor,
        user: Option<UserId>,
        meta: RequestMeta,
    ) -> Entry {
        let entry = Entry::new(self.name(), actor, meta);
        match user {
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

    /// An entry about a user, authenticated by the caller's token.
    pub(crate) fn entry(self, action: AuditAction, user: UserId) -> Entry {
        let entry = action.entry(self.actor, user, self.meta);
        entry.authenticated_by(audit_log::AuthMethod::Token)
    }
}
