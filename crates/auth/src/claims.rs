use std::fmt;

use serde::{Deserialize, Serialize};
use values::{EmailAddress, UserId};

/// The scope that administrators have.
pub const ADMIN_SCOPE: &str = "admin";

/// The claims of an access token. All are required.
#[derive(Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Claims {
    /// Who signed it.
    pub iss: String,
    /// Its audience.
    pub aud: String,
    /// The user.
    pub sub: UserId,
    /// The token's own identifier.
    pub jti: String,
    /// When it was signed, in seconds since 1970.
    pub iat: u64,
    /// When it expires, in seconds since 1970.
    pub exp: u64,
    /// The same as `sub`.
    pub id: UserId,
    /// The user's e-mail address.
    pub email: String,
    /// The user's username.
    pub username: String,
    /// The user's scopes.
    pub scope: Vec<String>,
    /// The user's epoch when the token was signed: raising it revokes the token.
    pub epoch: i64,
    /// `false` until the e-mail address is confirmed: until then it relates the user to no task.
    #[serde(default = "yes")]
    pub email_verified: bool,
}

fn yes() -> bool {
    true
}

impl fmt::Debug for Claims {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Claims")
            .field("sub", &self.sub)
            .field("scope", &self.scope)
            .field("epoch", &self.epoch)
            .finish_non_exhaustive()
    }
}

/// The user whom a token identifies.
#[derive(Debug, Clone)]
pub struct Subject {
    /// The user.
    pub id: UserId,
    /// The user's e-mail address.
    pub email: EmailAddress,
    /// The user's username.
    pub username: EmailAddress,
    /// The user's scopes.
    pub scope: Vec<String>,
    /// The user's epoch.
    pub epoch: i64,
    /// Whether the e-mail address counts as confirmed.
    pub email_verified: bool,
}

/// The claims of a token with which one process of the system calls another.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct ServiceClaims {
    /// Who signed it.
    pub iss: String,
    /// [`crate::Signer::SERVICE_AUDIENCE`].
    pub aud: String,
    /// The process that sends it.
    pub sub: String,
    /// When it was signed, in seconds since 1970.
    pub iat: u64,
    /// When it expires, in seconds since 1970.
    pub exp: u64,
}
