//! Signatures of webhook calls, as Standard Webhooks specifies them.

use auth::{JwkSet, SigningKey};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, Mac as _};
use sha2::Sha256;
use values::{DeliveryId, FromText, Invalid, Secret};
use zeroize::Zeroizing;

const SECRET_PREFIX: &str = "whsec_";
const PUBLIC_KEY_PREFIX: &str = "whpk_";
/// The length of a secret in bytes, as Standard Webhooks limits it.
const SECRET_LENGTH: std::ops::RangeInclusive<usize> = 24..=64;

app_config::settings! {
    /// The service's own signing keys.
    pub struct SigningSettings {
        /// The current key, in PEM.
        pub key: Secret = by(|reader| auth::read_signing_key(
            reader,
            "WEBHOOK_SIGNING_KEY",
            "the key that signs webhook calls.",
        )),
        /// The previous key, in PEM.
        pub previous_key: Option<Secret> = by(|reader| auth::read_optional_key(
            reader,
            "WEBHOOK_PREVIOUS_SIGNING_KEY",
            "The previous key, which also signs and is published while receivers switch to the current one.",
        )),
    }
}

/// A receiver's signing secret, in the `whsec_…` form of Standard Webhooks.
#[derive(Debug, Clone)]
pub(crate) struct WebhookSecret(Secret);

impl WebhookSecret {
    /// The `whsec_…` form.
    pub(crate) fn expose(&self) -> &str {
        self.0.expose()
    }
}

impl FromText for WebhookSecret {
    fn from_text(text: &str) -> Result<Self, Invalid> {
        let secret = Secret::new(String::from_text(text)?);
        let message = "Must be `whsec_` followed by 24 to 64 bytes in base64.";
        let key = secret_key(text).ok_or(Invalid::new("invalid-webhook-secret", message));
        key.map(|_| Self(secret))
    }
}

/// The key of a secret in its `whsec_…` form.
fn secret_key(text: &str) -> Option<Zeroizing<Vec<u8>>> {
    let key = STANDARD.decode(text.strip_prefix(SECRET_PREFIX)?).ok()?;
    Some(Zeroizing::new(key)).filter(|key| SECRET_LENGTH.contains(&key.len()))
}

/// Signs with the current key, and with the previous one while receivers switch over.
pub(crate) struct WebhookSigner {
    keys: Vec<SigningKey>,
}

impl WebhookSigner {
    pub(crate) fn new(settings: &SigningSettings) -> anyhow::Result<Self> {
        let keys = std::iter::once(&settings.key).chain(&settings.previous_key);
        let keys = keys.map(SigningKey::from_pem).collect::<Result<_, _>>()?;
        Ok(Self { keys })
    }

    /// The public keys, the current one first, each also in its `whpk_…` form.
    pub(crate) fn published(&self) -> JwkSet {
        let keys = self.keys.iter().map(SigningKey::public).map(|public| {
            let mut jwk = public.jwk();
            jwk.whpk = Some(PUBLIC_KEY_PREFIX.to_owned() + &STANDARD.encode(public.as_bytes()));
            jwk
        });
        JwkSet {
            keys: keys.collect(),
        }
    }

    /// The value of the header `webhook-signature`, if there is one: a `v1` if the receiver has a valid secret and, unless a
    /// user made the body, a `v1a` for each key. The signed text is `id.timestamp.body`.
    ///
    /// What a user made could say of any task that it is approved, so the service does not vouch for it.
    pub(crate) fn sign(
        &self,
        id: DeliveryId,
        timestamp: i64,
        body: &[u8],
        is_made_by_user: bool,
        secret: Option<&str>,
    ) -> Option<String> {
        let mut signed = format!("{id}.{timestamp}.").into_bytes();
        signed.extend_from_slice(body);
        let keys = self.keys.iter().filter(|_| !is_made_by_user);
        let signatures = keys.map(|key| key.sign(&signed));
        let signatures = signatures.map(|signature| format!("v1a,{}", STANDARD.encode(signature)));
        let mut signatures: Vec<_> = signatures.collect();
        // HMAC accepts a key of any length.
        let hmac = |key: Zeroizing<Vec<u8>>| Hmac::<Sha256>::new_from_slice(&key).ok();
        if let Some(hmac) = secret.and_then(secret_key).and_then(hmac) {
            let code = hmac.chain_update(&signed).finalize();
            signatures.push(format!("v1,{}", STANDARD.encode(code.into_bytes())));
        }
        (!signatures.is_empty()).then(|| signatures.join(" "))
    }
}

#[cfg(test)]
mod tests {
    use base64::Engine as _;
    use base64::engine::general_purpose::STANDARD;
    use proptest::prelude::*;
    use values::FromText as _;

    use super::WebhookSecret;

    fn parses(text: &str) -> bool {
        WebhookSecret::from_text(text).is_ok()
    }

    #[test]
    fn a_secret_has_24_to_64_bytes() {
        for (length, accepted) in [(0, false), (23, false), (24, true), (64, true), (65, false)] {
            let text = format!("whsec_{}", STANDARD.encode(vec![7; length]));
            assert_eq!(parses(&text), accepted, "{length}");
        }
    }

    #[test]
    fn other_forms_are_invalid() {
        for text in [
            "",
            "whsec_",
            "MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw",
            "WHSEC_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw",
            "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLa!!",
            " whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw",
            "whpk_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw",
        ] {
            assert!(!parses(text), "{text}");
        }
    }

    proptest! {
        #[test]
        fn parsing_never_panics(text in any::<String>()) {
            let _ = parses(&text);
        }

        #[test]
        fn only_the_length_of_a_secret_is_limited(key in prop::collection::vec(any::<u8>(), 0..100)) {
            let text = format!("whsec_{}", STANDARD.encode(&key));
            prop_assert_eq!(parses(&text), (24..=64).contains(&key.len()));
        }
    }
}
