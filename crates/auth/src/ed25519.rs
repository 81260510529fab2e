//! The crypto provider of `jsonwebtoken`: only Ed25519, implemented by *ring*, so that a token cannot choose another
//! algorithm.

use std::sync::Once;

use jsonwebtoken::crypto::{CryptoProvider, JwtSigner, JwtVerifier, KeyUtils};
use jsonwebtoken::errors::{ErrorKind, Result};
use jsonwebtoken::signature::{self, Error};
use jsonwebtoken::{Algorithm, DecodingKey, EncodingKey};
use ring::signature::{ED25519, Ed25519KeyPair, UnparsedPublicKey};

static PROVIDER: CryptoProvider = CryptoProvider {
    signer_factory: |algorithm, key| match algorithm {
        Algorithm::EdDSA => Ok(Box::new(Signer::new(key)?)),
        _ => Err(ErrorKind::UnsupportedAlgorithm.into()),
    },
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

struct Signer(Ed25519KeyPair);

impl Signer {
    fn new(key: &EncodingKey) -> Result<Self> {
        let pair = Ed25519KeyPair::from_pkcs8_maybe_unchecked(key.as_bytes());
        Ok(Self(pair.map_err(|_| ErrorKind::InvalidEddsaKey)?))
    }
}

impl signature::Signer<Vec<u8>> for Signer {
    fn try_sign(&self, message: &[u8]) -> std::result::Result<Vec<u8>, Error> {
        Ok(self.0.sign(message).as_ref().to_vec())
    }
}

impl JwtSigner for Signer {
    fn algorithm(&self) -> Algorithm {
        Algorithm::EdDSA
    }
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
