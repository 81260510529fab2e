use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use jsonwebtoken::errors::ErrorKind;
use jsonwebtoken::{
    Algorithm, DecodingKey, TokenData, Validation, decode, decode_header, get_current_timestamp,
};
use moka::sync::Cache;
use parking_lot::RwLock;
use serde::de::DeserializeOwned;
use sha2::{Digest as _, Sha256};

use crate::claims::LEEWAY_SECONDS;
use crate::{Claims, JwkSet, Rejection, Revocations, ServiceClaims, Signer, ed25519};

/// The longest lifetime of an access token.
pub const MAX_TOKEN_LIFETIME: Duration = Duration::from_secs(365 * 24 * 3600);
/// The head of a token is parsed before its signature is checked, and `serde_json` takes a text in it for more JSON if the name of
/// the member says so, at any depth: 140 KB that are nested so overflow the stack of a thread.
const MAX_TOKEN_BYTES: usize = 8 * 1024;
const MAX_CACHED_TOKENS: u64 = 10_000;

/// The claims of a token, and the identifier of its key.
type VerifiedToken = (Arc<Claims>, Arc<str>);

/// Checks tokens against the published keys and the raised epochs.
#[derive(Debug)]
pub struct Verifier {
    keys: RwLock<HashMap<String, Arc<DecodingKey>>>,
    revocations: Revocations,
    validation: Validation,
    service_validation: Validation,
    /// Tokens with a valid signature, by hash. Keys, times and revocations are checked on every use.
    verified: Cache<[u8; 32], VerifiedToken>,
}

impl Verifier {
    /// Creates a verifier without keys. It rejects all tokens until [`Verifier::set_keys`].
    pub fn new(issuer: &str, audience: &str) -> Self {
        ed25519::install();
        Self {
            keys: RwLock::default(),
            revocations: Revocations::default(),
            validation: validation(issuer, audience),
            service_validation: validation(issuer, Signer::SERVICE_AUDIENCE),
            verified: Cache::new(MAX_CACHED_TOKENS),
        }
    }

    /// Replaces the keys. Ignores keys that are not Ed25519 or not named by their thumbprint.
    pub fn set_keys(&self, published: &JwkSet) {
        let known = published.keys.iter().filter_map(|jwk| {
            let key = DecodingKey::from_ed_der(jwk.public_key()?.as_bytes());
            Some((jwk.kid.clone(), Arc::new(key)))
        });
        let keys = known.collect();
        *self.keys.write() = keys;
    }

    /// Whether any key is known.
    pub fn has_keys(&self) -> bool {
        !self.keys.read().is_empty()
    }

    /// What is known of the revocation feed.
    pub fn revocations(&self) -> &Revocations {
        &self.revocations
    }

    /// Verifies an access token.
    ///
    /// # Errors
    /// Why the token is rejected.
    pub fn verify(&self, token: &str) -> Result<Arc<Claims>, Rejection> {
        if token.len() > MAX_TOKEN_BYTES {
            return Err(Rejection::Invalid);
        }
        let hash: [u8; 32] = Sha256::digest(token).into();
        let (claims, kid) = match self.verified.get(&hash) {
            Some(verified) => verified,
            None => self.verify_new(token, hash)?,
        };
        // Checked last, because the key may be withdrawn while a token is verified with it.
        if !self.keys.read().contains_key(&*kid) {
            return Err(Rejection::UnknownKey);
        }
        let now = get_current_timestamp();
        if claims.exp + LEEWAY_SECONDS < now {
            return Err(Rejection::Expired);
        }
        self.revocations.check(&claims, now)?;
        Ok(claims)
    }

    fn verify_new(&self, token: &str, hash: [u8; 32]) -> Result<VerifiedToken, Rejection> {
        let (kid, claims) = self.check::<Claims>(token, &self.validation)?;
        check_times(claims.iat, claims.exp, MAX_TOKEN_LIFETIME)?;
        if claims.subject.id != claims.sub {
            return Err(Rejection::Invalid);
        }
        let verified = (Arc::new(claims), Arc::from(kid));
        self.verified.insert(hash, verified.clone());
        Ok(verified)
    }

    /// Verifies a token for calls between processes of the system.
    ///
    /// # Errors
    /// Why the token is rejected.
    pub fn verify_service(&self, token: &str) -> Result<ServiceClaims, Rejection> {
        if token.len() > MAX_TOKEN_BYTES {
            return Err(Rejection::Invalid);
        }
        let (_, claims) = self.check::<ServiceClaims>(token, &self.service_validation)?;
        check_times(claims.iat, claims.exp, Signer::SERVICE_TOKEN_LIFETIME)?;
        Ok(claims)
    }

    /// Checks the signature, and what the claims of all tokens have in common. Returns the key's identifier, too.
    fn check<C>(&self, token: &str, validation: &Validation) -> Result<(String, C), Rejection>
    where
        C: DeserializeOwned,
    {
        let header = decode_header(token).map_err(|_| Rejection::Invalid)?;
        let kid = header.kid.ok_or(Rejection::Invalid)?;
        let key = self.keys.read().get(&kid).cloned();
        let key = key.ok_or(Rejection::UnknownKey)?;
        match decode(token, &key, validation) {
            Ok(TokenData { claims, .. }) => Ok((kid, claims)),
            Err(error) if matches!(error.kind(), ErrorKind::ExpiredSignature) => {
                Err(Rejection::Expired)
            }
            Err(_) => Err(Rejection::Invalid),
        }
    }
}

/// Refuses a token from the future, and one that would be valid for longer than any that is issued.
fn check_times(iat: u64, exp: u64, max_lifetime: Duration) -> Result<(), Rejection> {
    let is_early = iat > get_current_timestamp() + LEEWAY_SECONDS;
    let lifetime = exp.checked_sub(iat);
    let is_bounded = lifetime.is_some_and(|seconds| seconds <= max_lifetime.as_secs());
    if is_early || !is_bounded {
        return Err(Rejection::Invalid);
    }
    Ok(())
}

fn validation(issuer: &str, audience: &str) -> Validation {
    let mut validation = Validation::new(Algorithm::EdDSA);
    validation.leeway = LEEWAY_SECONDS;
    validation.validate_nbf = true;
    validation.set_issuer(&[issuer]);
    validation.set_audience(&[audience]);
    validation.set_required_spec_claims(&["exp", "iss", "aud", "sub"]);
    validation
}
