//! The files of the certificate and its key. Errors say what a file holds instead, and never show a part of a key.

use std::fs;

use anyhow::{Context as _, anyhow, bail};
use rustls::crypto::{CryptoProvider, ring};
use rustls::pki_types::pem::{Error as PemError, PemObject as _};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::sign::CertifiedKey;
use rustls::{Error, InconsistentKeys};

use crate::settings::TlsSettings;

/// Editors of Windows write it. PEM does not know it.
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";
const UTF_16_MARKS: [&[u8]; 2] = [b"\xff\xfe", b"\xfe\xff"];
const BEGIN: &str = "-----BEGIN ";
/// The mark of encrypted keys in the format of older OpenSSL versions.
const ENCRYPTED: &str = "Proc-Type: 4,ENCRYPTED";
const SUPPORTED: &str = "use RSA with 2048 to 4096 bits, ECDSA on P-256 or P-384, or Ed25519";
/// The object identifiers of common keys that are not supported, in DER.
const UNSUPPORTED: [(&[u8], &str); 6] = [
    (b"\x06\x05\x2b\x81\x04\x00\x23", "an ECDSA key on P-521"),
    (b"\x06\x05\x2b\x81\x04\x00\x0a", "an ECDSA key on secp256k1"),
    (
        b"\x06\x09\x2b\x24\x03\x03\x02\x08\x01\x01",
        "an ECDSA key on a Brainpool curve",
    ),
    (
        b"\x06\x09\x2a\x86\x48\x86\xf7\x0d\x01\x01\x0a",
        "an RSA-PSS key",
    ),
    (b"\x06\x03\x2b\x65\x71", "an Ed448 key"),
    (b"\x06\x07\x2a\x86\x48\xce\x38\x04\x01", "a DSA key"),
];

/// Loads a certificate with its chain and its key.
///
/// # Errors
/// A file cannot be read or used, or the key does not belong to the certificate.
pub(super) fn load_key(files: &TlsSettings) -> anyhow::Result<CertifiedKey> {
    let provider = &ring::default_provider();
    let path = &files.certificate_file;
    let chain = read(path).and_then(|pem| chain(&pem));
    let chain = chain.with_context(|| format!("TLS_CERTIFICATE_FILE {path}"))?;
    let path = &files.private_key_file;
    let named = || format!("TLS_PRIVATE_KEY_FILE {path}");
    let key = read(path).and_then(|pem| key(&pem)).with_context(named)?;
    let loaded = provider.key_provider.load_private_key(key.clone_key());
    if loaded.is_err() {
        return Err(anyhow!("{}", unsupported(&key))).with_context(named);
    }
    let used = CertifiedKey::from_der(chain.clone(), key.clone_key(), provider);
    used.map_err(|error| mismatch(error, &chain, &key, provider))
        .context("TLS_CERTIFICATE_FILE and TLS_PRIVATE_KEY_FILE cannot be used together")
}

fn read(path: &str) -> anyhow::Result<Vec<u8>> {
    let mut bytes = fs::read(path)?;
    if UTF_16_MARKS.iter().any(|mark| bytes.starts_with(mark)) {
        bail!("the file is UTF-16 text; save it as ASCII or UTF-8");
    }
    if bytes.starts_with(BYTE_ORDER_MARK) {
        bytes.drain(..BYTE_ORDER_MARK.len());
    }
    Ok(bytes)
}

fn chain(pem: &[u8]) -> anyhow::Result<Vec<CertificateDer<'static>>> {
    let chain: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(pem).collect();
    let chain = chain.context("it is not a PEM file")?;
    if chain.is_empty() {
        bail!(
            "the file holds no certificate in PEM format ({})",
            content(pem)
        );
    }
    Ok(chain)
}

fn key(pem: &[u8]) -> anyhow::Result<PrivateKeyDer<'static>> {
    let text = String::from_utf8_lossy(pem);
    if text.contains(ENCRYPTED) || labels(&text).any(|label| label == "ENCRYPTED PRIVATE KEY") {
        bail!(
            "the private key is encrypted; decrypt it, such as with `openssl pkey -in FILE -out DECRYPTED`"
        );
    }
    // The library's error could contain a part of the file.
    PrivateKeyDer::from_pem_slice(pem).map_err(|error| match error {
        PemError::NoItemsFound => {
            anyhow!(
                "the file holds no private key in PEM format ({})",
                content(pem)
            )
        }
        _ => anyhow!("the private key is damaged"),
    })
}

/// What a file holds, in words.
fn content(pem: &[u8]) -> String {
    let text = String::from_utf8_lossy(pem);
    let labels: Vec<_> = labels(&text).collect();
    match (labels.is_empty(), pem.is_empty()) {
        (_, true) => "it is empty".to_owned(),
        (true, false) => "it has no line `-----BEGIN …-----`".to_owned(),
        (false, _) => format!("it holds: {}", labels.join(", ")),
    }
}

fn labels(text: &str) -> impl Iterator<Item = &str> {
    text.lines().filter_map(label)
}

/// The label of a line `-----BEGIN …-----`, if it consists of words.
fn label(line: &str) -> Option<&str> {
    let label = line.trim().strip_prefix(BEGIN)?.strip_suffix("-----")?;
    let is_word = |c: char| c.is_ascii_uppercase() || c.is_ascii_digit() || " -".contains(c);
    (label.len() <= 32 && label.chars().all(is_word)).then_some(label)
}

fn unsupported(key: &PrivateKeyDer<'_>) -> String {
    let der = key.secret_der();
    let known = UNSUPPORTED
        .iter()
        .find(|(oid, _)| der.windows(oid.len()).any(|window| window == *oid));
    let what = known.map_or("a key of an unsupported type or size", |(_, what)| what);
    format!("the file holds {what}; {SUPPORTED}")
}

fn mismatch(
    error: Error,
    chain: &[CertificateDer<'static>],
    key: &PrivateKeyDer<'static>,
    provider: &CryptoProvider,
) -> anyhow::Error {
    if error != Error::InconsistentKeys(InconsistentKeys::KeyMismatch) {
        return error.into();
    }
    let is_of_key = |certificate: &CertificateDer<'static>| {
        CertifiedKey::from_der(vec![certificate.clone()], key.clone_key(), provider).is_ok()
    };
    if chain.iter().any(is_of_key) {
        anyhow!("the server's certificate must be first in the file, followed by its issuers")
    } else {
        anyhow!("the key belongs to none of the certificates in the file")
    }
}
