//! Checks signatures by the Standard Webhooks specification, with independent implementations.

use std::{
    sync::{Arc, Mutex},
    time::{SystemTime, UNIX_EPOCH},
};

use anyhow::ensure;
use base64::{Engine as _, engine::general_purpose::STANDARD};
use rig::client::{Call, Client};
use ring::signature::{ED25519, UnparsedPublicKey};
use serde_json::Value;
use standardwebhooks::Webhook;
use ureq::http::HeaderMap;

use crate::{rng::Rng, sync::lock};

const SECRET_LENGTH: usize = 32;
/// The maximum difference between a timestamp and the current time.
const TOLERANCE_SECONDS: u64 = 5 * 60;
/// The percentage of webhooks that have a secret.
const SECRET_PERCENT: usize = 50;

/// The Ed25519 keys that the system publishes. Clones share them.
#[derive(Debug, Clone, Default)]
pub(crate) struct Keys(Arc<Mutex<Vec<Vec<u8>>>>);

impl Keys {
    /// Loads the published keys.
    pub(crate) fn published(gateway: &str) -> anyhow::Result<Self> {
        let keys = Self::default();
        keys.refresh(gateway)?;
        Ok(keys)
    }

    /// Loads the published keys again, as receivers do while a key is rotated.
    pub(crate) fn refresh(&self, gateway: &str) -> anyhow::Result<()> {
        let mut client = Client::new(gateway);
        client.quiet = true;
        let call = Call::new("GET", "/.well-known/webhook-keys.json");
        let body = client.call(&call)?.expect(200)?.body;
        let all = body.get("keys").and_then(Value::as_array);
        let decoded = |key: &Value| {
            let text = key.get("whpk")?.as_str()?;
            STANDARD.decode(text.strip_prefix("whpk_")?).ok()
        };
        let keys: Vec<_> = all.into_iter().flatten().filter_map(decoded).collect();
        ensure!(!keys.is_empty(), "there is no key in {body}");
        *lock(&self.0) = keys;
        Ok(())
    }

    /// Returns what is wrong with the signatures of a request to a webhook with this secret.
    pub(crate) fn find_error(
        &self,
        headers: &HeaderMap,
        body: &[u8],
        secret: Option<&str>,
    ) -> Option<&'static str> {
        let text = |name| headers.get(name).and_then(|value| value.to_str().ok());
        let (Some(id), Some(time), Some(signatures)) = (
            text("webhook-id"),
            text("webhook-timestamp"),
            text("webhook-signature"),
        ) else {
            return Some("a header is missing");
        };
        if !is_recent(time) {
            return Some("the timestamp is not current");
        }
        let of = |wanted: &'static str| {
            let all = signatures.split(' ').filter_map(|one| one.split_once(','));
            all.filter(move |(version, _)| *version == wanted)
        };
        let mut signed = format!("{id}.{time}.").into_bytes();
        signed.extend_from_slice(body);
        if of("v1a").next().is_none() {
            return Some("there is no v1a signature");
        }
        if !of("v1a").all(|(_, signature)| self.verify(&signed, signature)) {
            return Some("a v1a signature does not match any published key");
        }
        match (secret, of("v1").count()) {
            (None, 0) => None,
            (None, _) => Some("there is a v1 signature without a secret"),
            (Some(_), 0) => Some("there is no v1 signature"),
            (Some(secret), _) => {
                let webhook = Webhook::new(secret).ok();
                let verified = webhook.is_some_and(|webhook| webhook.verify(body, headers).is_ok());
                (!verified).then_some("the v1 signature is wrong")
            }
        }
    }

    fn verify(&self, signed: &[u8], signature: &str) -> bool {
        let Ok(signature) = STANDARD.decode(signature) else {
            return false;
        };
        let keys = lock(&self.0);
        keys.iter().any(|key| {
            let key = UnparsedPublicKey::new(&ED25519, key);
            key.verify(signed, &signature).is_ok()
        })
    }
}

fn is_recent(seconds: &str) -> bool {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    let now = now.map(|since| since.as_secs()).unwrap_or_default();
    let then = seconds.parse::<u64>();
    then.is_ok_and(|then| now.abs_diff(then) <= TOLERANCE_SECONDS)
}

/// The secret of a webhook. Every second webhook has none.
pub(crate) fn secret_of(seed: u64, key: &str) -> Option<String> {
    let mut rng = Rng::for_subject(seed, &format!("secret {key}"));
    if !rng.chance(SECRET_PERCENT) {
        return None;
    }
    let byte = |_| u8::try_from(rng.below(256)).unwrap_or_default();
    let bytes: Vec<u8> = (0..SECRET_LENGTH).map(byte).collect();
    Some(format!("whsec_{}", STANDARD.encode(bytes)))
}

#[cfg(test)]
mod tests {
    use ring::signature::{Ed25519KeyPair, KeyPair as _};

    use super::*;

    const BODY: &[u8] = br#"{"status":"approved"}"#;
    const SECRET: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";

    fn pair(seed: u8) -> Ed25519KeyPair {
        Ed25519KeyPair::from_seed_unchecked(&[seed; 32]).unwrap()
    }

    fn keys() -> Keys {
        let keys = vec![pair(1).public_key().as_ref().to_vec()];
        Keys(Arc::new(Mutex::new(keys)))
    }

    fn headers(signatures: &str, time: i64) -> HeaderMap {
        let mut headers = HeaderMap::new();
        headers.insert("webhook-id", "abc".parse().unwrap());
        headers.insert("webhook-timestamp", time.into());
        headers.insert("webhook-signature", signatures.parse().unwrap());
        headers
    }

    fn now() -> i64 {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
        now.as_secs().try_into().unwrap()
    }

    fn v1a(seed: u8, time: i64) -> String {
        let mut signed = format!("abc.{time}.").into_bytes();
        signed.extend_from_slice(BODY);
        format!("v1a,{}", STANDARD.encode(pair(seed).sign(&signed)))
    }

    fn v1(time: i64) -> String {
        let webhook = Webhook::new(SECRET).unwrap();
        webhook.sign("abc", time, BODY).unwrap()
    }

    #[test]
    fn a_signature_by_the_published_key_and_the_secret_is_valid() {
        let time = now();
        let ours = headers(&v1a(1, time), time);
        assert_eq!(keys().find_error(&ours, BODY, None), None);
        let both = headers(&format!("{} {}", v1a(1, time), v1(time)), time);
        assert_eq!(keys().find_error(&both, BODY, Some(SECRET)), None);
    }

    #[test]
    fn invalid_signatures_are_found() {
        let time = now();
        let (ours, theirs) = (v1a(1, time), v1a(2, time));
        let invalid = |signatures: &str, secret| {
            let error = keys().find_error(&headers(signatures, time), BODY, secret);
            error.is_some()
        };
        assert!(invalid("", None));
        assert!(invalid(&theirs, None));
        assert!(invalid(&format!("{ours} {theirs}"), None));
        assert!(invalid(&ours, Some(SECRET)));
        assert!(invalid(&format!("{ours} {}", v1(time)), None));
        assert!(invalid(
            &format!("{ours} v1,{}", STANDARD.encode("x")),
            Some(SECRET)
        ));
        let ours = headers(&ours, time);
        assert!(keys().find_error(&ours, b"{}", None).is_some());
        let old = time - 301;
        let old = headers(&v1a(1, old), old);
        assert!(keys().find_error(&old, BODY, None).is_some());
    }

    #[test]
    fn the_secret_of_a_webhook_is_stable_and_optional() {
        let secrets: Vec<_> = (0..50).map(|key| secret_of(1, &key.to_string())).collect();
        assert!(secrets.contains(&None));
        assert!(
            secrets
                .iter()
                .flatten()
                .all(|text| Webhook::new(text).is_ok())
        );
        assert_eq!(secrets.first(), Some(&secret_of(1, "0")));
    }
}
