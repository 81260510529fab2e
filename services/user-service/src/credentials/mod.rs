//! Credentials of users that can be revoked alone. A token that is issued for one names it, and ends with it: the revocation
//! feed lists the credentials that have ended.
//!
//! A credential is a row while it is valid; deleting the row ends it, and the database adds it to the feed. What revokes all
//! tokens of a user also ends the user's sessions. After a restore of the database no credential is valid.
//!
//! There are two kinds: the sessions of browsers, and the API keys of programs. See `sessions` and `keys`.

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
