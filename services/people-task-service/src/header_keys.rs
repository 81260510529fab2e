//! The values of headers are sealed with a key of the settings before they are stored, so that a copy of the database does
//! not tell them.

use app_config::{Reader, SettingValue, Settings, parse_list};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ring::aead::{AES_256_GCM, Aad, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};
use std::collections::HashSet;
use std::sync::Arc;
use values::{Secret, WebhookId};
use zeroize::Zeroizing;

/// How many hexadecimal digits of its hash identify a key.
const ID_DIGITS: usize = 16;

/// Names of headers in lower case, and their values.
pub(crate) type HeaderPairs = Vec<(String, Secret)>;

/// Headers as they are stored.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct SealedHeaders {
    /// The names, in lower case.
    pub(crate) names: Vec<String>,
    /// The identifier of the key.
    pub(crate) key: String,
    /// The nonce and the encrypted values, in base64.
    sealed: String,
}

/// The keys that seal and open the values of headers.
#[derive(Debug, Clone, Default)]
pub struct HeaderKeys(Vec<HeaderKey>);

#[derive(Debug, Clone)]
struct HeaderKey {
    id: String,
    /// Its `Debug` names the algorithm only.
    key: Arc<LessSafeKey>,
}

impl Settings for HeaderKeys {
    fn read(reader: &mut Reader) -> Result<Self, app_config::Error> {
        let keys = reader.optional(
            "WEBHOOK_HEADER_KEYS",
            "The keys that encrypt the `headers` of webhooks in the database. The first one encrypts, and all decrypt. Give the people-task-service and the webhook-worker the same. Without it, `headers` are refused.",
        )?;
        Ok(keys.unwrap_or_default())
    }
}

impl SettingValue for HeaderKeys {
    const ALLOWED: &'static str = "keys separated by commas, each of 64 hexadecimal digits, such as `openssl rand -hex 32` makes";
    const EXAMPLE: &'static str =
        "2b44b0c0a5f4a2f1d6c1e8c3b7a69f0e1d2c3b4a5968778695a4b3c2d1e0f102";
    const SECRET: bool = true;

    fn parse(text: &str) -> Result<Self, String> {
        let keys = parse_list(text.trim(), HeaderKey::parse)?;
        let ids: HashSet<_> = keys.iter().map(|key| &key.id).collect();
        if ids.len() < keys.len() {
            return Err(
                "a key is there twice; keep its first place and remove the other".to_owned(),
            );
        }
        Ok(Self(keys))
    }
}

impl HeaderKey {
    fn parse(text: &str) -> Result<Self, String> {
        let bytes = hex::decode(text).map(Zeroizing::new);
        let bytes = bytes.map_err(|_| "a key is not hexadecimal".to_owned())?;
        let key = UnboundKey::new(&AES_256_GCM, &bytes);
        let key = key.map_err(|_| "a key does not have 64 digits".to_owned())?;
        let hash = Sha256::new().chain_update("countersign header key ");
        let mut id = hex::encode(hash.chain_update(&*bytes).finalize());
        id.truncate(ID_DIGITS);
        let key = Arc::new(LessSafeKey::new(key));
        Ok(Self { id, key })
    }
}

impl HeaderKeys {
    /// The identifiers of the keys. The first one seals.
    pub(crate) fn ids(&self) -> Vec<String> {
        self.0.iter().map(|key| key.id.clone()).collect()
    }

    /// Seals headers for a webhook, and for no other; `None` without a key.
    pub(crate) fn seal(&self, webhook: WebhookId, headers: &HeaderPairs) -> Option<SealedHeaders> {
        let key = self.0.first()?;
        let values: Vec<&str> = headers.iter().map(|(_, value)| value.expose()).collect();
        let mut sealed = Zeroizing::new(serde_json::to_vec(&values).ok()?);
        let nonce: [u8; NONCE_LEN] = rand::random();
        let of_webhook = Aad::from(webhook.as_bytes());
        let tag = key.key.seal_in_place_separate_tag(
            Nonce::assume_unique_for_key(nonce),
            of_webhook,
            sealed.as_mut_slice(),
        );
        let tag = tag.ok()?;
        Some(SealedHeaders {
            names: headers.iter().map(|(name, _)| name.clone()).collect(),
            key: key.id.clone(),
            sealed: STANDARD.encode([&nonce, sealed.as_slice(), tag.as_ref()].concat()),
        })
    }

    /// Opens the headers of a webhook; `None` if no key has sealed them for it.
    pub(crate) fn open(&self, webhook: WebhookId, headers: &SealedHeaders) -> Option<HeaderPairs> {
        let key = self.0.iter().find(|key| key.id == headers.key)?;
        let sealed = STANDARD.decode(&headers.sealed).ok()?;
        let (nonce, sealed) = sealed.split_first_chunk::<NONCE_LEN>()?;
        let mut opened = Zeroizing::new(sealed.to_vec());
        let nonce = Nonce::assume_unique_for_key(*nonce);
        let of_webhook = Aad::from(webhook.as_bytes());
        let opened = key
            .key
            .open_in_place(nonce, of_webhook, opened.as_mut_slice())
            .ok()?;
        let values: Vec<String> = serde_json::from_slice(opened).ok()?;
        let values = values.into_iter().map(Secret::new);
        (values.len() == headers.names.len())
            .then(|| headers.names.iter().cloned().zip(values).collect())
    }
}

#[cfg(test)]
mod tests {
    use app_config::SettingValue as _;
    use base64::Engine as _;
    use base64::engine::general_purpose::STANDARD;
    use proptest::prelude::*;
    use values::{Secret, WebhookId};

    use super::{HeaderKeys, HeaderPairs};

    fn key(byte: u8) -> String {
        hex::encode([byte; 32])
    }

    fn keys(list: &[String]) -> HeaderKeys {
        HeaderKeys::parse(&list.join(",")).unwrap()
    }

    fn headers() -> HeaderPairs {
        let pair = |name: &str, value: &str| (name.to_owned(), Secret::new(value));
        vec![
            pair("authorization", "Bearer the-secret"),
            pair("x-key", "k"),
        ]
    }

    fn exposed(headers: HeaderPairs) -> Vec<(String, String)> {
        headers
            .into_iter()
            .map(|(name, value)| (name, value.expose().to_owned()))
            .collect()
    }

    #[test]
    fn what_is_sealed_is_opened_by_each_list_that_has_the_key() {
        let webhook = WebhookId::generate();
        let sealed = keys(&[key(1), key(2)]).seal(webhook, &headers()).unwrap();
        for list in [vec![key(1)], vec![key(3), key(1)]] {
            let opened = keys(&list).open(webhook, &sealed).unwrap();
            assert_eq!(exposed(opened), exposed(headers()));
        }
        for list in [vec![key(2)], vec![key(3), key(2)]] {
            assert!(keys(&list).open(webhook, &sealed).is_none());
        }
        assert_eq!(keys(&[key(1)]).ids(), [sealed.key.as_str()]);
        assert_ne!(keys(&[key(2)]).ids(), [sealed.key.as_str()]);
    }

    #[test]
    fn nothing_shows_a_value_and_no_other_webhook_can_use_it() {
        let webhook = WebhookId::generate();
        let keys = keys(&[key(1)]);
        let sealed = keys.seal(webhook, &headers()).unwrap();
        let stored = serde_json::to_string(&sealed).unwrap();
        for text in [
            stored.as_str(),
            &format!("{sealed:?} {keys:?} {:?}", headers()),
        ] {
            assert!(!text.contains("the-secret"), "{text}");
        }
        assert!(stored.contains("authorization"));
        assert!(keys.open(WebhookId::generate(), &sealed).is_none());
        assert_ne!(keys.seal(webhook, &headers()).unwrap(), sealed);
    }

    #[test]
    fn a_key_has_64_hexadecimal_digits() {
        for text in ["x", &hex::encode([1; 31]), &hex::encode([1; 33]), ","] {
            assert!(HeaderKeys::parse(text).is_err(), "{text}");
        }
        assert!(HeaderKeys::default().ids().is_empty());
        assert!(
            HeaderKeys::default()
                .seal(WebhookId::generate(), &headers())
                .is_none()
        );
    }

    #[test]
    fn a_key_is_there_once() {
        for list in [
            vec![key(1), key(1)],
            vec![key(1), key(2), key(1)],
            vec![key(10), key(10).to_uppercase()],
        ] {
            let reason = HeaderKeys::parse(&list.join(",")).unwrap_err();
            assert!(reason.starts_with("a key is there twice"), "{reason}");
            assert!(!reason.contains(&list[0]), "{reason}");
        }
    }

    proptest! {
        #[test]
        fn damaged_ones_are_not_opened(at in any::<prop::sample::Index>(), bit in 0..6_u8) {
            let webhook = WebhookId::generate();
            let keys = keys(&[key(1)]);
            let mut sealed = keys.seal(webhook, &headers()).unwrap();
            let mut bytes = STANDARD.decode(&sealed.sealed).unwrap();
            let at = at.index(bytes.len());
            bytes[at] ^= 1 << bit;
            sealed.sealed = STANDARD.encode(bytes);
            prop_assert!(keys.open(webhook, &sealed).is_none());
        }
    }
}
