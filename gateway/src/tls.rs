//! TLS at the gateway's own port, with a certificate that can be renewed while the gateway runs.

use std::fs;
use std::sync::Arc;

use anyhow::{Context as _, anyhow, bail};
use parking_lot::RwLock;
use rustls::crypto::{CryptoProvider, ring};
use rustls::pki_types::pem::{Error as PemError, PemObject as _};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use rustls::{Error, InconsistentKeys, ServerConfig};
use tokio_util::sync::CancellationToken;

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

/// The certificate that is presented to callers, reloaded when its files change.
#[derive(Debug)]
pub(crate) struct Certificates {
    files: TlsSettings,
    current: RwLock<Arc<CertifiedKey>>,
}

impl Certificates {
    pub(crate) fn load(files: &TlsSettings) -> anyhow::Result<Arc<Self>> {
        Ok(Arc::new(Self {
            files: files.clone(),
            current: RwLock::new(Arc::new(load_key(files)?)),
        }))
    }

    /// The configuration of a port that serves TLS 1.2 and 1.3 with the certificate.
    pub(crate) fn server_config(self: &Arc<Self>) -> anyhow::Result<ServerConfig> {
        let builder = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()));
        let builder = builder.with_safe_default_protocol_versions()?;
        let builder = builder.with_no_client_auth();
        Ok(builder.with_cert_resolver(Arc::<Self>::clone(self)))
    }

    /// Loads the files again at the reload interval. If they cannot be used, the last certificate stays.
    pub(crate) async fn reload_periodically(self: Arc<Self>, shutdown: CancellationToken) {
        let pause = || tokio::time::sleep(self.files.reload_interval);
        while shutdown.run_until_cancelled(pause()).await.is_some() {
            self.reload();
        }
    }

    fn reload(&self) {
        match load_key(&self.files) {
            Ok(loaded) => {
                let mut current = self.current.write();
                if current.cert != loaded.cert {
                    *current = Arc::new(loaded);
                    tracing::info!("TLS certificate reloaded");
                }
            }
            Err(error) => {
                metrics::counter!("gateway_tls_reload_failures_total").increment(1);
                tracing::error!(error = %format!("{error:#}"), "the TLS certificate cannot be reloaded; keeping the current one");
            }
        }
    }
}

impl ResolvesServerCert for Certificates {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        let current = self.current.read();
        Some(Arc::clone(&current))
    }
}

/// Loads a certificate with its chain and its key. Errors say what a file holds instead, and never show a part of a key.
fn load_key(files: &TlsSettings) -> anyhow::Result<CertifiedKey> {
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

#[cfg(test)]
mod tests {
    use std::fs;
    use std::time::Duration;

    use rcgen::{CertifiedKey, generate_simple_self_signed};
    use tempfile::TempDir;

    use super::Certificates;
    use crate::settings::TlsSettings;

    fn write(files: &TlsSettings) {
        let generated = generate_simple_self_signed(["gateway.example".to_owned()]).unwrap();
        let CertifiedKey { cert, signing_key } = generated;
        fs::write(&files.certificate_file, cert.pem()).unwrap();
        fs::write(&files.private_key_file, signing_key.serialize_pem()).unwrap();
    }

    #[test]
    fn a_renewed_certificate_is_used_and_an_unusable_one_is_not() {
        let folder = TempDir::new().unwrap();
        let path = |name| folder.path().join(name).to_str().unwrap().to_owned();
        let files = TlsSettings {
            certificate_file: path("certificate.pem"),
            private_key_file: path("key.pem"),
            reload_interval: Duration::from_secs(60),
        };
        write(&files);
        let certificates = Certificates::load(&files).unwrap();
        let presented = || certificates.current.read().cert.clone();
        let first = presented();

        let key = fs::read(&files.private_key_file).unwrap();
        write(&files);
        let matching_key = fs::read(&files.private_key_file).unwrap();
        for unusable in [b"".as_slice(), b"no key".as_slice(), &key] {
            fs::write(&files.private_key_file, unusable).unwrap();
            certificates.reload();
            assert_eq!(presented(), first);
        }
        fs::write(&files.private_key_file, matching_key).unwrap();
        certificates.reload();
        assert_ne!(presented(), first);
    }
}
