//! A token that HAProxy can verify, and its key.

use std::time::{Duration, SystemTime};

use anyhow::anyhow;
use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use ring::rand::SystemRandom;
use ring::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair as _};
use serde_json::json;

/// The issuer of the token.
pub(super) const ISSUER: &str = "bench";
const LIFETIME: Duration = Duration::from_secs(24 * 3600);
const PEM_WIDTH: usize = 64;
/// The DER of a public key of the curve P-256 up to its 65 bytes.
const PUBLIC_KEY: [u8; 26] = [
    0x30, 0x59, 0x30, 0x13, 0x06, 0x07, 0x2a, 0x86, 0x48, 0xce, 0x3d, 0x02, 0x01, 0x06, 0x08, 0x2a,
    0x86, 0x48, 0xce, 0x3d, 0x03, 0x01, 0x07, 0x03, 0x42, 0x00,
];

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
        let pkcs8 = EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &random)
            .map_err(|error| anyhow!("creating a key: {error}"))?;
        let algorithm = &ECDSA_P256_SHA256_FIXED_SIGNING;
        let key = EcdsaKeyPair::from_pkcs8(algorithm, pkcs8.as_ref(), &random)
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
            public_key: pem(key.public_key().as_ref()),
        })
    }

    /// The same claims with another signature.
    pub(super) fn forged(&self) -> String {
        let (message, _) = self.token.rsplit_once('.').unwrap_or_default();
        format!("{message}.{}", URL_SAFE_NO_PAD.encode([1; 64]))
    }
}

fn pem(point: &[u8]) -> String {
    let text = STANDARD.encode([&PUBLIC_KEY, point].concat());
    let mut pem = "-----BEGIN PUBLIC KEY-----\n".to_owned();
    for (index, character) in text.chars().enumerate() {
        if index > 0 && index % PEM_WIDTH == 0 {
            pem.push('\n');
        }
        pem.push(character);
    }
    pem.push_str("\n-----END PUBLIC KEY-----\n");
    pem
}
