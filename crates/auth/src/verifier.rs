use std::collections::HashMap;
use std::sync::{Arc, PoisonError, RwLock};

use jsonwebtoken::{
    Algorithm, DecodingKey, TokenData, Validation, decode, decode_header, get_current_timestamp,
};
use moka::sync::Cache;
use serde::de::DeserializeOwned;
use sha2::{Digest as _, Sha256};

use crate::{Claims, JwkSet, RevokedEpochs, ServiceClaims, Signer, ed25519};

const LEEWAY_SECONDS: u64 = 30;
const MAX_TOKEN_BYTES: usize = 8 * 1024;
const MAX_CACHED_TOKENS: u64 = 10_000;

/// Why a token is rejected.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Rejection {
    /// It is malformed, or from another issuer, or for another audience.
    #[error("the token is not valid")]
    Invalid,
    /// Its key is unknown, or not yet known.
    #[error("the token's key is unknown")]
    UnknownKey,
    /// It has expired.
    #[error("the token has expired")]
    Expired,
    /// The user's epoch was raised since it was issued: the password or the user was changed, or the user was deleted.
    #[error("the token was revoked")]
    Revoked,
}

/// Checks tokens against the published keys and the raised epochs.
#[derive(Debug)]
pub struct Verifier {
    keys: RwLock<HashMap<String, Arc<DecodingKey>>>,
    revoked: RevokedEpochs,
    validation: Validation,
    service_validation: Validation,
    /// Tokens with a valid signature, by hash. Times and epochs are checked on every use.
    verified: Cache<[u8; 32], Arc<Claims>>,
}

impl Verifier {
    /// Creates a verifier without keys. It rejects all tokens until [`Verifier::set_keys`].
    #[must_use]
    pub fn new(issuer: &str, audience: &str) -> Self {
        ed25519::install();
        Self {
            keys: RwLock::default(),
            revoked: RevokedEpochs::default(),
            validation: validation(issuer, audience),
            service_validation: validation(issuer, Signer::SERVICE_AUDIENCE),
            verified: Cache::new(MAX_CACHED_TOKENS),
        }
    }

    /// Replaces the keys. Ignores keys that are not Ed25519 or not named by their thumbprint.
    pub fn set_keys(&self, published: &JwkSet) {
        let known = published.keys.iter().filter_map(|jwk| {
            let key = jwk.public_key()?;
            Some((
                jwk.kid.clone(),
                Arc::new(DecodingKey::from_ed_der(key.as_bytes())),
            ))
        });
        let keys: HashMap<_, _> = known.collect();
        let mut current = self.keys.write().unwrap_or_else(PoisonError::into_inner);
        let withdrawn = current.keys().any(|kid| !keys.contains_key(kid));
        *current = keys;
        drop(current);
        if withdrawn {
            self.verified.invalidate_all();
        }
    }

    /// Whether any key is known.
    #[must_use]
    pub fn has_keys(&self) -> bool {
        let keys = self.keys.read().unwrap_or_else(PoisonError::into_inner);
        !keys.is_empty()
    }

    /// The known raised epochs.
    #[must_use]
    pub fn revoked(&self) -> &RevokedEpochs {
        &self.revoked
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
        let claims = match self.verified.get(&hash) {
            Some(claims) if claims.exp + LEEWAY_SECONDS < get_current_timestamp() => {
                return Err(Rejection::Expired);
            }
            Some(claims) => claims,
            None => {
                let claims = Arc::new(self.check::<Claims>(token, &self.validation)?.claims);
                let early = claims.iat > get_current_timestamp() + LEEWAY_SECONDS;
                if claims.id != claims.sub || early {
                    return Err(Rejection::Invalid);
                }
                self.verified.insert(hash, Arc::clone(&claims));
                claims
            }
        };
        if self.revoked.allows(claims.id, claims.epoch) {
            Ok(claims)
        } else {
            Err(Rejection::Revoked)
        }
    }

    /// Verifies a token for calls between processes of the system.
    ///
    /// # Errors
    /// Why the token is rejected.
    pub fn verify_service(&self, token: &str) -> Result<ServiceClaims, Rejection> {
        if token.len() > MAX_TOKEN_BYTES {
            return Err(Rejection::Invalid);
        }
        Ok(self.check(token, &self.service_validation)?.claims)
    }

    fn check<C>(&self, token: &str, validation: &Validation) -> Result<TokenData<C>, Rejection>
    where
        C: DeserializeOwned,
    {
        let header = decode_header(token).map_err(|_| Rejection::Invalid)?;
        let kid = header.kid.ok_or(Rejection::Invalid)?;
        let keys = self.keys.read().unwrap_or_else(PoisonError::into_inner);
        let key = keys.get(&kid).cloned().ok_or(Rejection::UnknownKey)?;
        drop(keys);
        decode(token, &key, validation).map_err(|error| match error.kind() {
            jsonwebtoken::errors::ErrorKind::ExpiredSignature => Rejection::Expired,
            _ => Rejection::Invalid,
        })
    }
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
