//! Checks signatures by the Standard Webhooks specification, with independent implementations.

use std::sync::{Arc, Mutex};

use anyhow::ensure;
use base64::{Engine as _, engine::general_purpose::STANDARD};
use chrono::Utc;
use rand::RngExt as _;
use rig::{Call, Client, Request, lock};
use ring::signature::{ED25519, UnparsedPublicKey};
use serde_json::Value;
use standardwebhooks::Webhook;
use ureq::http::{HeaderMap, HeaderName, HeaderValue};

use crate::rng;

const HEADERS: [&str; 3] = ["webhook-id", "webhook-timestamp", "webhook-signature"];
const SECRET_LENGTH: usize = 32;
/// The maximum difference between a timestamp and the current time.
const TOLERANCE_SECONDS: u64 = 5 * 60;

/// The Ed25519 keys that the system publishes. Clones share them.
#[derive(Debug, Clone, Default)]
pub(crate) struct Keys(Arc<Mutex<Vec<Vec<u8>>>>);

impl Keys {
    /// Loads the published keys, and again while a key is rotated, as receivers do.
    pub(crate) fn load(&self, client: &Client) -> anyhow::Result<()> {
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
        request: &Request<'_>,
        secret: Option<&str>,
    ) -> Option<&'static str> {
        let headers = HEADERS.map(|name| request.header(name));
        let [Some(id), Some(time), Some(signatures)] = headers else {
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
        signed.extend_from_slice(request.body);
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
                let headers = headers_of(request);
                let verify = |webhook: Webhook| webhook.verify(request.body, &headers).is_ok();
                let verified = webhook.is_some_and(verify);
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

/// The signed headers, as the library reads them.
fn headers_of(request: &Request<'_>) -> HeaderMap {
    let headers = HEADERS.into_iter().filter_map(|name| {
        let value = HeaderValue::from_str(request.header(name)?).ok()?;
        Some((HeaderName::from_static(name), value))
    });
    headers.collect()
}

fn is_recent(seconds: &str) -> bool {
    let then = seconds.parse::<i64>();
    then.is_ok_and(|then| Utc::now().timestamp().abs_diff(then) <= TOLERANCE_SECONDS)
}

/// The secret of a webhook. Every second webhook has none.
pub(crate) fn secret_of(seed: u64, key: &str) -> Option<String> {
    let mut rng = rng::for_subject(seed, &format!("secret {key}"));
    if !rng.random_bool(0.5) {
        return None;
    }
    let bytes: [u8; SECRET_LENGTH] = rng.random();
    Some(format!("whsec_{}", STANDARD.encode(bytes)))
}

#[cfg(test)]
mod tests {
    use std::time::{SystemTime, UNIX_EPOCH};

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

    /// What is wrong with a request with these headers.
    fn error_of(
        signatures: &str,
        time: i64,
        body: &[u8],
        secret: Option<&str>,
    ) -> Option<&'static str> {
        let time = time.to_string();
        let values = ["abc", time.as_str(), signatures];
        let headers: Vec<_> = HEADERS
            .into_iter()
            .zip(values)
            .map(|(name, value)| httparse::Header {
                name,
                value: value.as_bytes(),
            })
            .collect();
        let request = Request {
            path: "/",
            headers: &headers,
            body,
        };
        keys().find_error(&request, secret)
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
        let ours = v1a(1, time);
        assert_eq!(error_of(&ours, time, BODY, None), None);
        let both = format!("{ours} {}", v1(time));
        assert_eq!(error_of(&both, time, BODY, Some(SECRET)), None);
    }

    #[test]
    fn invalid_signatures_are_found() {
        let time = now();
        let (ours, theirs) = (v1a(1, time), v1a(2, time));
        let invalid = |signatures: &str, secret| error_of(signatures, time, BODY, secret).is_some();
        assert!(invalid("", None));
        assert!(invalid(&theirs, None));
        assert!(invalid(&format!("{ours} {theirs}"), None));
        assert!(invalid(&ours, Some(SECRET)));
        assert!(invalid(&format!("{ours} {}", v1(time)), None));
        assert!(invalid(
            &format!("{ours} v1,{}", STANDARD.encode("x")),
            Some(SECRET)
        ));
        assert!(error_of(&ours, time, b"{}", None).is_some());
        let old = time - 301;
        assert!(error_of(&v1a(1, old), old, BODY, None).is_some());
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
