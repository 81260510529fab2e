//! Access tokens: JSON Web Tokens (RFC 7519) signed with Ed25519 (RFC 8037), and who may call what.
//!
//! A [`Verifier`] checks the signature with the key that `kid` names, `iss`, `aud`, `exp`, `iat`, the presence and type of
//! every claim, that the user's epoch has not been raised since, and that the database has not been restored since. The
//! algorithm is that of the key, never that of the token; no other algorithm is compiled in. Only the user service and its
//! workers have the private key: [why](../../../docs/decisions/ed25519-only.md).
//!
//! Invariant: every process that polls the feed rejects a token whose epoch is below its user's, within one second
//! of the commit that raised the epoch.

mod api_key;
mod claims;
mod ed25519;
mod extractors;
mod key_scopes;
mod keys;
mod mail_keys;
pub mod mails;
mod remote_authority;
mod revocation;
mod revocation_feed;
pub mod routes;
mod signer;
mod verifier;

pub use api_key::{ApiKey, ExchangedKey};
pub use claims::{ADMIN_SCOPE, Claims, EmailVerification, Rejection, ServiceClaims, Subject};
pub use extractors::{
    AdminCaller, AdminProblems, Caller, MaybeCaller, ServiceCaller, TokenProblems, challenge,
    has_key_token, insufficient_scope, invalid_key, presented_key, token_missing, token_revoked,
};
pub use key_scopes::{KeyScope, key_not_accepted};
pub use keys::{Jwk, JwkSet, PublicKey, SigningKey, read_optional_key, read_signing_key};
pub use mail_keys::{MailKey, MailKeys, NotificationWorkerCaller};
pub use remote_authority::{RemoteAuthority, RemoteSettings, read_audience, read_issuer};
pub use revocation::{RevocationFeed, Revocations};
pub use revocation_feed::{FeedReader, FeedSource};
pub use signer::Signer;
pub use verifier::{MAX_TOKEN_LIFETIME, Verifier};
