use std::fmt;
use std::time::Duration;

use jsonwebtoken::{Algorithm, EncodingKey, Header, encode, get_current_timestamp};
use serde::Serialize;
use values::Secret;

use crate::{Claims, JwkSet, ServiceClaims, SigningKey, Subject, ed25519};

const SERVICE_TOKEN_SECONDS: u64 = 60;

/// A token could not be signed, which only a broken key can cause.
#[derive(Debug, thiserror::Error)]
#[error("the token could not be signed")]
pub struct SignError(#[from] jsonwebtoken::errors::Error);

/// Signs tokens with the key in use, and publishes it together with the keys that still verify.
pub struct Signer {
    key: EncodingKey,
    key_id: String,
    published: JwkSet,
    issuer: String,
    audience: String,
    lifetime: Duration,
}

impl Signer {
    /// The audience of tokens with which processes of the system call each other.
    pub const SERVICE_AUDIENCE: &'static str = "countersign-internal";

    /// Signs with `key`; tokens of `others` (the previous or the next key) verify too.
    #[must_use]
    pub fn new(
        key: &SigningKey,
        others: &[SigningKey],
        issuer: String,
        audience: String,
        lifetime: Duration,
    ) -> Self {
        ed25519::install();
        let all = std::iter::once(key).chain(others);
        Self {
            key: EncodingKey::from_ed_der(key.pkcs8()),
            key_id: key.public().key_id(),
            published: JwkSet {
                keys: all.map(|key| key.public().jwk()).collect(),
            },
            issuer,
            audience,
            lifetime,
        }
    }

    /// The public keys, for `/.well-known/jwks.json`.
    #[must_use]
    pub fn published(&self) -> &JwkSet {
        &self.published
    }

    /// An access token for a user.
    ///
    /// # Errors
    /// The key is broken.
    pub fn sign(&self, subject: Subject) -> Result<Secret, SignError> {
        let now = get_current_timestamp();
        self.encode(&Claims {
            iss: self.issuer.clone(),
            aud: self.audience.clone(),
            sub: subject.id,
            jti: hex::encode(rand::random::<[u8; 16]>()),
            iat: now,
            exp: now + self.lifetime.as_secs(),
            id: subject.id,
            email: subject.email.as_str().to_owned(),
            username: subject.username.as_str().to_owned(),
            scope: subject.scope,
            epoch: subject.epoch,
            email_verified: subject.email_verified,
        })
    }

    /// A token with which one process of the system calls another; it is valid for 60 seconds.
    ///
    /// # Errors
    /// The key is broken.
    pub fn sign_for_service(&self, process: &str) -> Result<Secret, SignError> {
        let now = get_current_timestamp();
        self.encode(&ServiceClaims {
            iss: self.issuer.clone(),
            aud: Self::SERVICE_AUDIENCE.to_owned(),
            sub: process.to_owned(),
            iat: now,
            exp: now + SERVICE_TOKEN_SECONDS,
        })
    }

    fn encode(&self, claims: &impl Serialize) -> Result<Secret, SignError> {
        let mut header = Header::new(Algorithm::EdDSA);
        header.kid = Some(self.key_id.clone());
        Ok(Secret::new(encode(&header, claims, &self.key)?))
    }
}

impl fmt::Debug for Signer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Signer({})", self.key_id)
    }
}
