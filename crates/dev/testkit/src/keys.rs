use values::Secret;

/// The bytes before the 32 secret bytes in the PKCS#8 form of an Ed25519 key (RFC 8410 section 7).
const PREFIX: &str = "302e020100300506032b657004220420";

/// Returns a new Ed25519 private key as PEM text, which settings accept.
#[must_use]
pub fn ed25519_pem() -> Secret {
    let mut der = hex::decode(PREFIX).unwrap();
    der.extend_from_slice(&rand::random::<[u8; 32]>());
    Secret::new(pem::encode(&pem::Pem::new("PRIVATE KEY", der)))
}
