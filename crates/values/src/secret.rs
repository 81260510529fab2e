use std::fmt;

use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;
use zeroize::Zeroizing;

/// A text that must not be seen: a password, a code, a key, a url that holds credentials.
///
/// Its `Debug` is silent, it cannot be serialised, and its memory is zeroed when it is dropped.
/// Whoever needs the text says so with [`Secret::expose`].
#[derive(Clone)]
pub struct Secret(Zeroizing<String>);

impl Secret {
    /// Keeps a text from being seen.
    pub fn new(text: impl Into<String>) -> Self {
        Self(Zeroizing::new(text.into()))
    }

    /// 256 bits from the system's generator, as 64 hexadecimal digits.
    #[must_use]
    pub fn random() -> Self {
        Self::new(hex::encode(rand::random::<[u8; 32]>()))
    }

    /// The text itself, for the one place that needs it.
    #[must_use]
    pub fn expose(&self) -> &str {
        &self.0
    }

    /// What may be stored: enough to recognise the secret, not enough to use it.
    #[must_use]
    pub fn fingerprint(&self) -> Fingerprint {
        Fingerprint(Sha256::digest(self.0.as_bytes()).into())
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(…)")
    }
}

/// The SHA-256 of a [`Secret`]; comparing two takes the same time whatever they hold.
///
/// A plain hash is enough because every secret that is stored this way has 256 random bits;
/// passwords go through bcrypt instead.
#[derive(Clone, Copy)]
pub struct Fingerprint([u8; 32]);

impl Fingerprint {
    /// The 32 bytes, as the database keeps them.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }

    /// Whether the stored bytes are this fingerprint, in constant time.
    #[must_use]
    pub fn matches(&self, stored: &[u8]) -> bool {
        self.0.ct_eq(stored).into()
    }
}

impl fmt::Debug for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Fingerprint(…)")
    }
}

#[cfg(test)]
mod tests {
    use super::Secret;

    #[test]
    fn a_secret_is_silent() {
        assert_eq!(format!("{:?}", Secret::new("pa55word")), "Secret(…)");
    }

    #[test]
    fn a_random_secret_has_64_hex_digits_and_its_own_fingerprint() {
        let (one, other) = (Secret::random(), Secret::random());
        assert_eq!(one.expose().len(), 64);
        assert!(one.expose().bytes().all(|b| b.is_ascii_hexdigit()));
        assert!(one.fingerprint().matches(one.fingerprint().as_bytes()));
        assert!(!one.fingerprint().matches(other.fingerprint().as_bytes()));
        assert!(!one.fingerprint().matches(&[]));
    }
}
