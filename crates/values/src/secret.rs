use serde::{Deserialize, Deserializer};
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;
use zeroize::Zeroizing;

/// A text that must not be disclosed: a password, a code, a key, a URL with credentials.
///
/// Its `Debug` is redacted, it cannot be serialized, and its memory is zeroed when it is dropped.
/// [`Secret::expose`] returns the text.
#[derive(Clone, derive_more::Debug)]
#[debug("Secret(…)")]
pub struct Secret(Zeroizing<String>);

impl Secret {
    /// Wraps a text.
    pub fn new(text: impl Into<String>) -> Self {
        Self(Zeroizing::new(text.into()))
    }

    /// Generates 256 random bits, as 64 hexadecimal digits.
    pub fn random() -> Self {
        Self::new(hex::encode(rand::random::<[u8; 32]>()))
    }

    /// The text itself.
    pub fn expose(&self) -> &str {
        &self.0
    }

    /// A hash that can be stored: it identifies the secret but cannot be used in its place.
    pub fn fingerprint(&self) -> Fingerprint {
        Fingerprint(Sha256::digest(self.0.as_bytes()).into())
    }
}

impl<'de> Deserialize<'de> for Secret {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer).map(Self::new)
    }
}

/// The SHA-256 hash of a [`Secret`], compared in constant time.
///
/// A plain hash is enough, because every secret that is stored this way has 160 random bits or more. Passwords are
/// hashed with bcrypt instead.
#[derive(Clone, Copy, derive_more::Debug)]
#[debug("Fingerprint(…)")]
pub struct Fingerprint([u8; 32]);

impl Fingerprint {
    /// The 32 bytes, as stored in the database.
    pub fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }

    /// Compares with stored bytes, in constant time.
    #[must_use]
    pub fn matches(&self, stored: &[u8]) -> bool {
        self.0.ct_eq(stored).into()
    }
}

#[cfg(test)]
mod tests {
    use super::Secret;

    #[test]
    fn debug_output_is_redacted() {
        assert_eq!(format!("{:?}", Secret::new("pa55word")), "Secret(…)");
    }

    #[test]
    fn a_random_secret_has_64_hex_digits_and_a_unique_fingerprint() {
        let (one, other) = (Secret::random(), Secret::random());
        assert_eq!(one.expose().len(), 64);
        assert!(one.expose().bytes().all(|b| b.is_ascii_hexdigit()));
        assert!(one.fingerprint().matches(one.fingerprint().as_bytes()));
        assert!(!one.fingerprint().matches(other.fingerprint().as_bytes()));
        assert!(!one.fingerprint().matches(&[]));
    }
}
