//! Access tokens: JSON Web Tokens (RFC 7519) signed with Ed25519 (RFC 8037).
//!
//! - [`Signer`] signs tokens. Only the user service and its workers have the private key.
//! - [`Verifier`] checks them: signature by the key that the `kid` names, `iss`, `aud`, `exp`, `iat`,
//!   every claim's presence and type, and that the user's epoch has not been raised since.
//!   The algorithm is that of the key and never the token's choice; no other algorithm is compiled in.
//! - [`RemoteAuthority`] keeps a verifier up to date with the user service's keys and raised epochs.
//! - [`Caller`], [`MaybeCaller`], [`AdminCaller`]: extractors, so that a handler's signature says who may call it.
//!
//! Invariant: a token whose epoch is below the raised epoch of its user is refused, at every process
//! that polls the feed, within one second of the commit that raised it.

mod caller;
mod claims;
mod ed25519;
mod keys;
mod remote;
mod revocation;
mod signer;
mod verifier;

pub use caller::{
    AdminCaller, AdminProblems, Caller, MaybeCaller, ServiceCaller, TokenProblems,
    insufficient_scope, token_missing, token_revoked,
};
pub use claims::{ADMIN_SCOPE, Claims, ServiceClaims, Subject};
pub use keys::{Jwk, JwkSet, KeyError, PublicKey, SigningKey};
pub use remote::{RemoteAuthority, RemoteSettings};
pub use revocation::{RevocationFeed, RevokedEpochs};
pub use signer::{SignError, Signer};
pub use verifier::{Rejection, Verifier};
