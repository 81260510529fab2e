use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use jsonwebtoken::{Algorithm, Header, get_current_timestamp};
use serde::Serialize;
use values::Secret;

use crate::{Claims, JwkSet, ServiceClaims, SigningKey, Subject};

/// Signs tokens with the current key, and publishes it together with the keys that also verify tokens.
#[derive(derive_more::Debug)]
#[debug("Signer({key_id})")]
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
    pub fn sign(&self, subject: Subject) -> Secret {
        self.sign_for(subject, self.lifetime)
    }

    /// Issues an access token for a user that is valid for `longest` at most.
    pub fn sign_for(&self, subject: Subject, longest: Duration) -> Secret {
        let now = get_current_timestamp();
        self.encode(&Claims {
            iss: self.issuer.clone(),
            aud: self.audience.clone(),
            sub: subject.id,
            jti: hex::encode(rand::random::<[u8; 16]>()),
            iat: now,
            exp: now + self.lifetime.min(longest).as_secs(),
            subject,
        })
    }

    /// Issues a token for calls between processes of the system. It is valid for 60 seconds.
    pub fn sign_for_service(&self, process: &str) -> Secret {
        let now = get_current_timestamp();
        self.encode(&ServiceClaims {
            iss: self.issuer.clone(),
            aud: Self::SERVICE_AUDIENCE.to_owned(),
            sub: process.to_owned(),
            iat: now,
            exp: now + Self::SERVICE_TOKEN_LIFETIME.as_secs(),
        })
    }

    fn encode(&self, claims: &impl Serialize) -> Secret {
        let mut header = Header::new(Algorithm::EdDSA);
        header.kid = Some(self.key_id.clone());
        // Texts and integers always become JSON. Without a part, the token would be refused.
        let parts = [serde_json::to_vec(&header), serde_json::to_vec(claims)];
        let parts = parts.map(|part| URL_SAFE_NO_PAD.encode(part.unwrap_or_default()));
        let signed = parts.join(".");
        let signature = URL_SAFE_NO_PAD.encode(self.key.sign(signed.as_bytes()));
        Secret::new(format!("{signed}.{signature}"))
    }
}
