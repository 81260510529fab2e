use audit_log::{Actor, AuthMethod, Entry, RequestMeta};
use auth::Caller;
use values::UserId;

use super::action::AuditAction;

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
        entry.authenticated_by(AuthMethod::Token)
    }
}
