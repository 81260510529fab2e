use std::ops::Not;

use serde::{Deserialize, Serialize};
use values::{CredentialId, EmailAddress, Names as _, UserId};

use crate::KeyScope;

/// The scope of administrators.
pub const ADMIN_SCOPE: &str = "admin";

/// How far the clocks of two processes may differ.
pub(crate) const LEEWAY_SECONDS: u64 = 30;

/// Why a token is rejected.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rejection {
    /// It is malformed, or from another issuer, or for another audience.
    Invalid,
    /// Its key is unknown, or not yet known.
    UnknownKey,
    /// It has expired.
    Expired,
    /// The user's epoch was raised since it was issued: the password or the user was changed, or the user was deleted.
    /// Or it is of another incarnation of the database, such as one before a restore.
    Revoked,
    /// The epochs of its incarnation are not yet known.
    NotReady,
}

/// The claims of an access token. All are required, except where noted.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Claims {
    /// The issuer.
    pub iss: String,
    /// The audience.
    pub aud: String,
    /// The user.
    pub sub: UserId,
    /// The token's own identifier.
    pub jti: String,
    /// When it was issued, in seconds since 1970.
    pub iat: u64,
    /// When it expires, in seconds since 1970.
    pub exp: u64,
    /// What it says of its user.
    #[serde(flatten)]
    pub subject: Subject,
}

/// What a token says of the user that it is issued for.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Subject {
    /// The user, as in `sub`.
    pub id: UserId,
    /// The user's e-mail address.
    pub email: EmailAddress,
    /// The user's username.
    pub username: EmailAddress,
    /// The user's scopes.
    pub scope: Vec<String>,
    /// The user's epoch when the token was issued. Raising the epoch revokes the token.
    pub epoch: i64,
    /// The incarnation of the database, read by the same statement as the epoch. Restoring a backup starts a new incarnation,
    /// in which epochs may have other values; so all tokens of earlier ones are refused.
    pub incarnation: String,
    /// `false` while the e-mail address is unconfirmed. It then gives no access to tasks.
    #[serde(default = "default_email_verified")]
    pub email_verified: bool,
    /// The group of the user's account, which counts as one wherever users share something. Absent unless a stranger made
    /// the account.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group: Option<String>,
    /// The credential that the token was issued for: the token ends with it. Absent in tokens that were issued for a
    /// password alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub credential: Option<CredentialId>,
    /// What the API key may do that the token was issued for; then `credential` is the key. Absent in other tokens. Names that
    /// are unknown count for nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key_scopes: Option<Vec<String>>,
    /// Whether the user is a service account, whose address an administrator chose and no one confirmed. Absent if not.
    #[serde(default, skip_serializing_if = "Not::not")]
    pub service: bool,
}

impl Subject {
    /// The same user for the token of an API key, which may do what both the user and the key may do, and ends with the key.
    #[must_use]
    pub fn of_key(mut self, key: CredentialId, scopes: &[KeyScope]) -> Self {
        if !scopes.contains(&KeyScope::Admin) {
            // Versions that know no keys do not read their scopes.
            self.scope.retain(|scope| scope != ADMIN_SCOPE);
        }
        let scopes = scopes.iter().map(|scope| scope.name().to_owned());
        self.key_scopes = Some(scopes.collect());
        self.credential = Some(key);
        self
    }
}

fn default_email_verified() -> bool {
    true
}

values::names! {
    /// Whether an e-mail address must be confirmed before it is trusted. It says who the approver of a task is.
    pub enum EmailVerification {
        /// Addresses are trusted immediately.
        Off = "off",
        /// An address is trusted once the user has returned a code that was sent to it.
        Required = "required",
    }
}

app_config::named_settings! {
    EmailVerification, "`off` or `required`", "off";
}

/// The claims of a token for calls between processes of the system.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct ServiceClaims {
    /// The issuer.
    pub iss: String,
    /// [`crate::Signer::SERVICE_AUDIENCE`].
    pub aud: String,
    /// The calling process.
    pub sub: String,
    /// When it was issued, in seconds since 1970.
    pub iat: u64,
    /// When it expires, in seconds since 1970.
    pub exp: u64,
}
