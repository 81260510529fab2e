//! The crypto provider of `jsonwebtoken`, which verifies tokens: only Ed25519, implemented by *ring*, so that a token cannot
//! choose another algorithm. What signs tokens has no choice of an algorithm, and needs no provider.

use std::sync::Once;

use jsonwebtoken::crypto::{CryptoProvider, JwtVerifier, KeyUtils};
use jsonwebtoken::errors::{ErrorKind, Result};
use jsonwebtoken::signature::{self, Error};
use jsonwebtoken::{Algorithm, DecodingKey};
use ring::signature::{ED25519, UnparsedPublicKey};

static PROVIDER: CryptoProvider = CryptoProvider {
    signer_factory: |_, _| Err(ErrorKind::UnsupportedAlgorithm.into()),
    verifier_factory: |algorithm, key| match algorithm {
        Algorithm::EdDSA => Ok(Box::new(Verifier::new(key)?)),
        _ => Err(ErrorKind::UnsupportedAlgorithm.into()),
    },
    key_utils: KeyUtils::new_unimplemented(),
};

/// Makes Ed25519 the only algorithm of this process. Further calls have no effect.
pub(crate) fn install() {
    static INSTALLED: Once = Once::new();
    INSTALLED.call_once(|| {
        // It fails only if another provider is installed, and no other code installs one.
        let _ = PROVIDER.install_default();
    });
}

struct Verifier(UnparsedPublicKey<Vec<u8>>);

impl Verifier {
    fn new(key: &DecodingKey) -> Result<Self> {
        let bytes = key.try_get_as_bytes()?.to_vec();
        Ok(Self(UnparsedPublicKey::new(&ED25519, bytes)))
    }
}

impl signature::Verifier<Vec<u8>> for Verifier {
    fn verify(&self, message: &[u8], signature: &Vec<u8>) -> std::result::Result<(), Error> {
        self.0.verify(message, signature).map_err(|_| Error::new())
    }
}

impl JwtVerifier for Verifier {
    fn algorithm(&self) -> Algorithm {
        Algorithm::EdDSA
    }
}
