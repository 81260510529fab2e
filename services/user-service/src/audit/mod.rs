//! What the audit log of accounts holds. Each capability writes its rows with its changes; here are the
//! names of actions, and the administrators' view.

pub(crate) mod routes;

use audit_log::{Actor, Entry, RequestMeta, Subject};
use auth::Caller;
use values::UserId;

/// What can be done to a user, as the log names it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Action {
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

impl Action {
    /// The name, which the table's constraint lists.
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

    /// A row that says that somebody did this to a user.
    pub(crate) fn entry(self, actor: Actor, user: UserId, origin: RequestMeta) -> Entry {
        self.entry_about(actor, Some(user), origin)
    }

    /// The same about a name, whether or not a user has it.
    pub(crate) fn entry_about(
        self,
        actor: Actor,
        user: Option<UserId>,
        origin: RequestMeta,
    ) -> Entry {
        let entry = Entry::new(self.name(), actor, origin);
        match user {
            Some(user) => entry.on(Subject::User(user)),
            None => entry,
        }
    }
}

/// Who asks for something, by a token, and from where.
#[derive(Debug, Clone)]
pub(crate) struct Author {
    pub(crate) actor: Actor,
    pub(crate) origin: RequestMeta,
}

impl Author {
    pub(crate) fn new(caller: &Caller, origin: RequestMeta) -> Self {
        Self {
            actor: Actor::from(caller),
            origin,
        }
    }

    /// A row that says that the author did this to a user.
    pub(crate) fn entry(self, action: Action, user: UserId) -> Entry {
        let entry = action.entry(self.actor, user, self.origin);
        entry.authenticated_by(audit_log::AuthMethod::Token)
    }
}
