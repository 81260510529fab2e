//! Credentials of users that can be revoked alone: the sessions of browsers, and the API keys of programs. A token that is issued
//! for one names it, and ends with it: [why](../../../../docs/decisions/sessions.md).

pub(crate) mod store;

use std::time::Duration;

/// How long a token that is issued for a credential is valid at most.
pub(crate) const TOKEN_LIFETIME: Duration = Duration::from_mins(5);

values::names! {
    pub(crate) enum CredentialKind {
        Session = "session",
        Key = "key",
    }
}
