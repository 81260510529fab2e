//! A token that HAProxy can verify, and its key.

use std::time::{Duration, SystemTime};

use anyhow::{Context as _, anyhow};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use rcgen::KeyPair;
use ring::rand::SystemRandom;
use ring::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair};
use serde_json::json;

/// The issuer of the token.
pub(super) const ISSUER: &str = "bench";
const LIFETIME: Duration = Duration::from_secs(24 * 3600);

/// A token that is signed with ES256, and the public key of its signature.
#[derive(Debug)]
pub(super) struct SignedToken {
    pub(super) token: String,
    /// In PEM format.
    pub(super) public_key: String,
}

impl SignedToken {
    /// Signs about as many claims as a token of the system has.
    pub(super) fn create() -> anyhow::Result<Self> {
        let random = SystemRandom::new();
        let pair = KeyPair::generate().context("creating a key")?;
        let algorithm = &ECDSA_P256_SHA256_FIXED_SIGNING;
        let key = EcdsaKeyPair::from_pkcs8(algorithm, &pair.serialize_der(), &random)
            .map_err(|error| anyhow!("reading a key: {error}"))?;
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH)?;
        let header =
            json!({"alg": "ES256", "typ": "JWT", "kid": "0123456789abcdef0123456789abcdef"});
        let claims = json!({
            "iss": ISSUER,
            "aud": ISSUER,
            "sub": "0123456789abcdef01234567",
            "scope": ["user"],
            "epoch": 0,
            "iat": now.as_secs(),
            "exp": (now + LIFETIME).as_secs(),
        });
        let parts = [header, claims].map(|part| URL_SAFE_NO_PAD.encode(part.to_string()));
        let message = parts.join(".");
        let signature = key
            .sign(&random, message.as_bytes())
            .map_err(|error| anyhow!("signing a token: {error}"))?;
        Ok(Self {
            token: format!("{message}.{}", URL_SAFE_NO_PAD.encode(signature.as_ref())),
            public_key: pair.public_key_pem(),
        })
    }

    /// The same claims with another signature.
    pub(super) fn forged(&self) -> String {
        let (message, _) = self.token.rsplit_once('.').unwrap_or_default();
        format!("{message}.{}", URL_SAFE_NO_PAD.encode([1; 64]))
    }
}
