//! API keys as programs send them: `csk_`, the key's identifier, random characters and a checksum.

use rand::RngExt as _;
use rand::distr::Alphanumeric;
use serde::{Deserialize, Serialize};
use values::{CredentialId, Fingerprint, FromText as _, Secret};

const PREFIX: &str = "csk_";
const ID: usize = 24;
/// The random letters and digits: 178 bits.
const RANDOM: usize = 30;
const CHECKSUM: usize = 6;
const LENGTH: usize = PREFIX.len() + ID + RANDOM + CHECKSUM;
const DIGITS: &[u8; 62] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

/// An API key: 64 characters, of which the first four tell scanners of secrets what they have found, and the last six whether
/// it can be one. The database has its hash.
#[derive(Clone, derive_more::Debug)]
#[debug("ApiKey({id})")]
pub struct ApiKey {
    id: CredentialId,
    text: Secret,
}

impl ApiKey {
    /// Makes a key for an identifier.
    pub fn generate(id: CredentialId) -> Self {
        let random = rand::rng().sample_iter(Alphanumeric).take(RANDOM);
        let random: String = random.map(char::from).collect();
        let text = format!("{PREFIX}{id}{random}");
        let checksum = checksum(&text);
        Self {
            id,
            text: Secret::new(text + &checksum),
        }
    }

    /// Whether a text is meant to be a key: whether it starts like one.
    pub fn is_meant(text: &str) -> bool {
        text.starts_with(PREFIX)
    }

    /// Parses a key. `None` if it has another form, or a wrong checksum.
    pub fn parse(text: &str) -> Option<Self> {
        let is_plain = text.len() == LENGTH && text.is_ascii() && Self::is_meant(text);
        let (checked, given) = text.split_at_checked(LENGTH - CHECKSUM)?;
        if !is_plain || checksum(checked) != given {
            return None;
        }
        let id = checked.get(PREFIX.len()..PREFIX.len() + ID)?;
        Some(Self {
            id: CredentialId::from_text(id).ok()?,
            text: Secret::new(text),
        })
    }

    /// The identifier, which is no secret.
    pub fn id(&self) -> CredentialId {
        self.id
    }

    /// The whole text.
    pub fn expose(&self) -> &str {
        self.text.expose()
    }

    /// What the database has of the key.
    pub fn fingerprint(&self) -> Fingerprint {
        self.text.fingerprint()
    }
}

/// The CRC-32 of a text in base 62.
fn checksum(text: &str) -> String {
    let mut rest = crc32fast::hash(text.as_bytes());
    let mut digits = [b'0'; CHECKSUM];
    for digit in digits.iter_mut().rev() {
        let at = usize::try_from(rest % 62).unwrap_or_default();
        *digit = DIGITS.get(at).copied().unwrap_or(b'0');
        rest /= 62;
    }
    digits.iter().copied().map(char::from).collect()
}

/// The answer of `POST /internal/keys/exchange`: a token for the key that the gateway sends in the field `key`.
#[derive(Serialize, Deserialize)]
pub struct ExchangedKey {
    /// The access token.
    pub token: String,
    /// For how many seconds it is valid.
    pub seconds: u64,
}

#[cfg(test)]
mod tests {
    use values::CredentialId;

    use super::{ApiKey, LENGTH, checksum};

    #[test]
    fn a_key_is_recognised_by_its_form_and_its_checksum() {
        let id = CredentialId::generate();
        let key = ApiKey::generate(id);
        let text = key.expose().to_owned();
        assert_eq!(text.len(), LENGTH);
        assert!(text.starts_with(&format!("csk_{id}")));
        let parsed = ApiKey::parse(&text).unwrap();
        assert_eq!(parsed.id(), id);
        assert!(parsed.fingerprint().matches(key.fingerprint().as_bytes()));
        assert_ne!(ApiKey::generate(id).expose(), text);
    }

    #[test]
    fn every_changed_character_is_noticed() {
        let text = ApiKey::generate(CredentialId::generate())
            .expose()
            .to_owned();
        for at in 0..text.len() {
            let mut bytes = text.clone().into_bytes();
            bytes[at] = if bytes[at] == b'a' { b'b' } else { b'a' };
            let changed = String::from_utf8(bytes).unwrap();
            assert!(ApiKey::parse(&changed).is_none(), "{at}");
        }
        for other in [
            "",
            "csk_",
            "csk_é",
            &text[..LENGTH - 1],
            &format!("{text}0"),
        ] {
            assert!(ApiKey::parse(other).is_none(), "{other}");
        }
    }

    #[test]
    fn the_checksum_is_a_crc_32() {
        // The check value of CRC-32 is cbf43926.
        let mut number = 0_u64;
        for digit in checksum("123456789").bytes() {
            let at = super::DIGITS.iter().position(|known| *known == digit);
            number = number * 62 + at.unwrap() as u64;
        }
        assert_eq!(number, 0xcbf4_3926);
    }

    #[test]
    fn debug_output_has_the_identifier_alone() {
        let id = CredentialId::generate();
        assert_eq!(
            format!("{:?}", ApiKey::generate(id)),
            format!("ApiKey({id})")
        );
    }
}
