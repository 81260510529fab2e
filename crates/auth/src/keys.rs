//! Private and public keys. The user service publishes the public ones at `/.well-known/jwks.json`, in its
//! `revocations/routes.rs`.

use std::sync::Arc;

use anyhow::{Context as _, anyhow, bail};
use app_config::{Reader, SettingValue};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::signature::{Ed25519KeyPair, KeyPair as _};
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};
use values::Secret;

const NOT_PEM: &str =
    "it is not PEM: expected a block that starts with -----BEGIN PRIVATE KEY-----";
const ENCRYPTED: &str =
    "it is encrypted; decrypt it, such as with `openssl pkey -in FILE -out DECRYPTED`";
const NOT_ED25519: &str = "it is not an Ed25519 private key in PKCS#8 form, the only kind that is supported; \
    `openssl genpkey -algorithm ed25519` makes one";

/// An Ed25519 private key. It discloses only its public half.
#[derive(Clone, derive_more::Debug)]
#[debug("SigningKey({})", self.public().key_id())]
pub struct SigningKey(Arc<Ed25519KeyPair>);

impl SigningKey {
    /// Parses a PEM block of PKCS#8 (RFC 8410), as `openssl genpkey -algorithm ed25519` writes it.
    ///
    /// # Errors
    /// Why the text is not a key. The error does not contain the text.
    pub fn from_pem(text: &Secret) -> anyhow::Result<Self> {
        // Editors of Windows write a byte order mark.
        let text = text.expose().trim_start_matches('\u{feff}');
        let block = pem::parse(text).context(NOT_PEM)?;
        if block.tag() == "ENCRYPTED PRIVATE KEY" || block.headers().get("Proc-Type").is_some() {
            bail!(ENCRYPTED);
        }
        let pkcs8 = zeroize::Zeroizing::new(block.into_contents());
        let pair = Ed25519KeyPair::from_pkcs8_maybe_unchecked(&pkcs8);
        let pair = pair.map_err(|_| anyhow!(NOT_ED25519))?;
        Ok(Self(Arc::new(pair)))
    }

    /// Signs bytes; the signature has 64 bytes (RFC 8032).
    pub fn sign(&self, message: &[u8]) -> Vec<u8> {
        self.0.sign(message).as_ref().to_vec()
    }

    /// The public half.
    pub fn public(&self) -> PublicKey {
        PublicKey(self.0.public_key().as_ref().to_vec())
    }
}

/// The text of a private key that [`SigningKey::from_pem`] parses.
struct KeyText(Secret);

impl SettingValue for KeyText {
    const ALLOWED: &'static str = "an Ed25519 private key (PEM, PKCS#8)";
    const EXAMPLE: &'static str = "-----BEGIN PRIVATE KEY-----
MC4CAQAwBQYDK2VwBCIEIAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA
-----END PRIVATE KEY-----";
    const SECRET: bool = true;

    fn parse(text: &str) -> Result<Self, String> {
        let text = Secret::new(text);
        SigningKey::from_pem(&text).map_err(|error| error.to_string())?;
        Ok(Self(text))
    }
}

/// Reads the setting of a private key.
///
/// # Errors
/// It is missing, or [`SigningKey::from_pem`] refuses it.
pub fn read_signing_key(
    reader: &mut Reader,
    name: &'static str,
    purpose: &'static str,
) -> Result<Secret, app_config::Error> {
    Ok(reader.required::<KeyText>(name, purpose)?.0)
}

/// Reads the setting of a private key that may be absent.
///
/// # Errors
/// [`SigningKey::from_pem`] refuses it.
pub fn read_optional_key(
    reader: &mut Reader,
    name: &'static str,
    purpose: &'static str,
) -> Result<Option<Secret>, app_config::Error> {
    let key = reader.optional::<KeyText>(name, purpose)?;
    Ok(key.map(|key| key.0))
}

/// The 32 bytes of an Ed25519 public key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PublicKey(Vec<u8>);

impl PublicKey {
    /// The 32 bytes.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// The identifier of the key: its JWK thumbprint (RFC 7638).
    pub fn key_id(&self) -> String {
        let x = URL_SAFE_NO_PAD.encode(&self.0);
        let canonical = format!(r#"{{"crv":"Ed25519","kty":"OKP","x":"{x}"}}"#);
        URL_SAFE_NO_PAD.encode(Sha256::digest(canonical))
    }

    /// The key as a JSON Web Key.
    pub fn jwk(&self) -> Jwk {
        Jwk {
            kty: "OKP".to_owned(),
            crv: "Ed25519".to_owned(),
            alg: "EdDSA".to_owned(),
            usage: "sig".to_owned(),
            kid: self.key_id(),
            x: URL_SAFE_NO_PAD.encode(&self.0),
            whpk: None,
        }
    }
}

/// A public key as a JSON Web Key (RFC 7517, RFC 8037).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Jwk {
    /// `OKP`.
    pub kty: String,
    /// `Ed25519`.
    pub crv: String,
    /// `EdDSA`.
    pub alg: String,
    /// `sig`.
    #[serde(rename = "use")]
    pub usage: String,
    /// The key's RFC 7638 thumbprint.
    pub kid: String,
    /// The 32 bytes in base64url.
    pub x: String,
    /// The same key in the form of Standard Webhooks, for the keys that sign webhooks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub whpk: Option<String>,
}

impl Jwk {
    /// The key, if it is an Ed25519 key whose `kid` is its thumbprint.
    pub fn public_key(&self) -> Option<PublicKey> {
        let ed25519 = self.kty == "OKP" && self.crv == "Ed25519";
        let bytes = URL_SAFE_NO_PAD.decode(&self.x).ok()?;
        let key = PublicKey(bytes);
        (ed25519 && key.0.len() == 32 && key.key_id() == self.kid).then_some(key)
    }
}

/// A JSON Web Key set (RFC 7517 section 5).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct JwkSet {
    /// The keys, the one in use first.
    pub keys: Vec<Jwk>,
}

#[cfg(test)]
mod tests {
    use rcgen::{KeyPair, PKCS_ED25519};

    use super::*;

    fn new_pem() -> Secret {
        let key = KeyPair::generate_for(&PKCS_ED25519).unwrap();
        Secret::new(key.serialize_pem())
    }

    fn error(text: &str) -> String {
        SigningKey::from_pem(&Secret::new(text))
            .unwrap_err()
            .to_string()
    }

    #[test]
    fn a_byte_order_mark_is_ignored() {
        let text = new_pem();
        let marked = Secret::new(format!("\u{feff}{}", text.expose()));
        let key = SigningKey::from_pem(&text).unwrap();
        assert_eq!(
            SigningKey::from_pem(&marked).unwrap().public(),
            key.public()
        );
    }

    #[test]
    fn a_setting_that_is_no_key_is_refused_and_not_shown() {
        let valid = new_pem();
        let encrypted = pem::encode(&pem::Pem::new("ENCRYPTED PRIVATE KEY", b"0"));
        let pairs = [
            ("KEY", valid.expose()),
            ("TEXT", "hidden"),
            ("ENCRYPTED", &encrypted),
        ];
        let mut reader = Reader::from_pairs(pairs).unwrap();

        let key = read_signing_key(&mut reader, "KEY", "a key.").unwrap();
        assert_eq!(key.expose(), valid.expose());
        let none = read_optional_key(&mut reader, "NONE", "Another key.");
        assert!(none.unwrap().is_none());
        for (name, reason) in [("TEXT", "it is not PEM"), ("ENCRYPTED", "it is encrypted")] {
            let error = read_optional_key(&mut reader, name, "Another key.");
            let error = error.unwrap_err().to_string();
            let expected =
                format!("{name} is (a secret that is not shown), which is not allowed: {reason}");
            assert!(error.starts_with(&expected), "{error}");
        }
    }

    #[test]
    fn the_example_of_a_key_can_be_described() {
        assert!(KeyText::parse(KeyText::EXAMPLE).is_ok());
    }

    #[test]
    fn the_error_says_which_kind_is_supported() {
        let block = |label: &str| pem::encode(&pem::Pem::new(label, b"0"));
        assert!(error(&block("ENCRYPTED PRIVATE KEY")).contains("it is encrypted; decrypt it"));
        assert!(error(&block("EC PRIVATE KEY")).contains("Ed25519"));
        assert!(error("nothing").contains("it is not PEM"));
    }
}
