use http::HeaderMap;
use standardwebhooks::{Webhook, WebhookError};

/// Fails unless a signature is valid.
pub fn verify(secret: &str, headers: &HeaderMap, body: &[u8]) -> Result<(), WebhookError> {
    Webhook::new(secret)?.verify(body, headers)
}
use std::time::{SystemTime, UNIX_EPOCH};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ring::signature::{ED25519, UnparsedPublicKey};

/// Fails unless a signature is valid. The keys are texts that begin with `whpk_`.
pub fn verify_with_keys(
    keys: &[String],
    headers: &HeaderMap,
    body: &[u8],
) -> Result<(), &'static str> {
    let header = |name| {
        let value = headers.get(name).and_then(|value| value.to_str().ok());
        value.ok_or("a header is missing or invalid")
    };
    let timestamp = header("webhook-timestamp")?;
    let sent: u64 = timestamp.parse().map_err(|_| "the time is invalid")?;
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    if now.map_or(true, |now| now.as_secs().abs_diff(sent) > 300) {
        return Err("the call is too old or too new");
    }
    let mut signed = format!("{}.{timestamp}.", header("webhook-id")?).into_bytes();
    signed.extend_from_slice(body);
    let is_valid = |key: &str, signature: &str| {
        let key = STANDARD.decode(key.trim_start_matches("whpk_"));
        let (Ok(key), Ok(signature)) = (key, STANDARD.decode(signature)) else {
            return false;
        };
        let key = UnparsedPublicKey::new(&ED25519, key);
        key.verify(&signed, &signature).is_ok()
    };
    let mut signatures = header("webhook-signature")?
        .split(' ')
        .filter_map(|text| text.strip_prefix("v1a,"));
    signatures
        .any(|signature| keys.iter().any(|key| is_valid(key, signature)))
        .then_some(())
        .ok_or("no signature by a published key")
}
