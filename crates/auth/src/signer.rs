use std::fmt;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use jsonwebtoken::{Algorithm, Header, get_current_timestamp};
use serde::Serialize;
use values::{CredentialId, Names as _, Secret};

use crate::{ADMIN_SCOPE, Claims, JwkSet, KeyScope, ServiceClaims, SigningKey, Subject};

/// A token could not be signed, because its claims are no JSON, which they always are.
#[derive(Debug, thiserror::Error)]
#[error("the token could not be signed")]
pub struct SignError(#[from] serde_json::Error);

/// Signs tokens with the current key, and publishes it together with the keys that also verify tokens.
pub struct Signer {
    key: SigningKey,
    key_id: String,
    published: JwkSet,
    issuer: String,
    audience: String,
    lifetime: Duration,
}

impl Signer {
    /// The audience of tokens for calls between processes of the system.
    pub const SERVICE_AUDIENCE: &'static str = "countersign-internal";
    /// The lifetime of tokens for calls between processes of the system.
    pub const SERVICE_TOKEN_LIFETIME: Duration = Duration::from_secs(60);

    /// Signs with `key`. Tokens signed with `others`, the previous or the next key, are also valid.
    pub fn new(
        key: &SigningKey,
        others: &[SigningKey],
        issuer: String,
        audience: String,
        lifetime: Duration,
    ) -> Self {
        let all = std::iter::once(key).chain(others);
        Self {
            key: key.clone(),
            key_id: key.public().key_id(),
            published: JwkSet {
                keys: all.map(|key| key.public().jwk()).collect(),
            },
            issuer,
            audience,
            lifetime,
        }
    }

    /// How long the tokens of users are valid.
    pub fn lifetime(&self) -> Duration {
        self.lifetime
    }

    /// The public keys, for `/.well-known/jwks.json`.
    #[must_use]
    pub fn published(&self) -> &JwkSet {
        &self.published
    }

    /// Issues an access token for a user.
    ///
    /// # Errors
    /// None in practice: see [`SignError`].
    pub fn sign(&self, subject: Subject) -> Result<Secret, SignError> {
        self.sign_claims(subject, None, None, self.lifetime)
    }

    /// Issues an access token that ends with a credential of its user, and is valid for `lifetime` at most.
    ///
    /// # Errors
    /// None in practice: see [`SignError`].
    pub fn sign_for_credential(
        &self,
        subject: Subject,
        credential: CredentialId,
        lifetime: Duration,
    ) -> Result<Secret, SignError> {
        let lifetime = self.lifetime.min(lifetime);
        self.sign_claims(subject, Some(credential), None, lifetime)
    }

    /// Issues an access token for an API key of a user, which ends with the key and is valid for `lifetime` at most. It may
    /// do what both the user and the key may do.
    ///
    /// # Errors
    /// None in practice: see [`SignError`].
    pub fn sign_for_key(
        &self,
        mut subject: Subject,
        key: CredentialId,
        scopes: &[KeyScope],
        lifetime: Duration,
    ) -> Result<Secret, SignError> {
        if !scopes.contains(&KeyScope::Admin) {
            // Versions that know no keys do not read their scopes.
            subject.scope.retain(|scope| scope != ADMIN_SCOPE);
        }
        let scopes = scopes.iter().map(|scope| scope.name().to_owned());
        let lifetime = self.lifetime.min(lifetime);
        self.sign_claims(subject, Some(key), Some(scopes.collect()), lifetime)
    }

    fn sign_claims(
        &self,
        subject: Subject,
        credential: Option<CredentialId>,
        key_scopes: Option<Vec<String>>,
        lifetime: Duration,
    ) -> Result<Secret, SignError> {
        let now = get_current_timestamp();
        self.encode(&Claims {
            iss: self.issuer.clone(),
            aud: self.audience.clone(),
            sub: subject.id,
            jti: hex::encode(rand::random::<[u8; 16]>()),
            iat: now,
            exp: now + lifetime.as_secs(),
            id: subject.id,
            email: subject.email.as_str().to_owned(),
            username: subject.username.as_str().to_owned(),
            scope: subject.scope,
            epoch: subject.epoch,
            incarnation: subject.incarnation,
            email_verified: subject.email_verified,
            group: subject.group,
            credential,
            key_scopes,
            service: subject.service,
        })
    }

    /// Issues a token for calls between processes of the system. It is valid for 60 seconds.
    ///
    /// # Errors
    /// None in practice: see [`SignError`].
    pub fn sign_for_service(&self, process: &str) -> Result<Secret, SignError> {
        let now = get_current_timestamp();
        self.encode(&ServiceClaims {
            iss: self.issuer.clone(),
            aud: Self::SERVICE_AUDIENCE.to_owned(),
            sub: process.to_owned(),
            iat: now,
            exp: now + Self::SERVICE_TOKEN_LIFETIME.as_secs(),
        })
    }

    fn encode(&self, claims: &impl Serialize) -> Result<Secret, SignError> {
        let mut header = Header::new(Algorithm::EdDSA);
        header.kid = Some(self.key_id.clone());
        let parts = [serde_json::to_vec(&header)?, serde_json::to_vec(claims)?];
        let signed = parts.map(|part| URL_SAFE_NO_PAD.encode(part)).join(".");
        let signature = URL_SAFE_NO_PAD.encode(self.key.sign(signed.as_bytes()));
        Ok(Secret::new(format!("{signed}.{signature}")))
    }
}

impl fmt::Debug for Signer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Signer({})", self.key_id)
    }
}
