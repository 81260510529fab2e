//! TLS at the gateway's own port, with a certificate that may be renewed while the gateway runs.

use std::fs;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use anyhow::Context as _;
use rustls::ServerConfig;
use rustls::crypto::{CryptoProvider, ring};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use tokio_util::sync::CancellationToken;

/// The files of a certificate.
#[derive(Debug, Clone)]
pub struct TlsSettings {
    /// The certificate and those between it and its authority, in PEM form, in this order.
    pub certificate_file: String,
    /// The certificate's private key, in PEM form.
    pub private_key_file: String,
    /// How often both are read again.
    pub reload_interval: Duration,
}

/// The certificate that is shown to callers, read again from its files when they change.
#[derive(Debug)]
pub(crate) struct Certificates {
    files: TlsSettings,
    provider: Arc<CryptoProvider>,
    current: RwLock<Arc<CertifiedKey>>,
}

impl Certificates {
    /// Reads the files.
    ///
    /// # Errors
    /// One cannot be read or holds something else, or the two do not belong together.
    pub(crate) fn read(files: &TlsSettings) -> anyhow::Result<Arc<Self>> {
        let provider = Arc::new(ring::default_provider());
        let current = RwLock::new(Arc::new(certified_key(files, &provider)?));
        Ok(Arc::new(Self {
            files: files.clone(),
            provider,
            current,
        }))
    }

    /// What a port needs in order to speak TLS 1.2 and 1.3 with the certificate.
    ///
    /// # Errors
    /// None in practice: the library has these versions.
    pub(crate) fn server(self: &Arc<Self>) -> anyhow::Result<ServerConfig> {
        let builder = ServerConfig::builder_with_provider(Arc::clone(&self.provider));
        let builder = builder.with_safe_default_protocol_versions()?;
        let resolver: Arc<dyn ResolvesServerCert> = Arc::<Self>::clone(self);
        Ok(builder.with_no_client_auth().with_cert_resolver(resolver))
    }

    /// Reads the files again, every so often. A certificate that cannot be used leaves the last one in force.
    pub(crate) async fn keep_fresh(&self, shutdown: CancellationToken) {
        loop {
            tokio::select! {
                () = tokio::time::sleep(self.files.reload_interval) => self.refresh(),
                () = shutdown.cancelled() => return,
            }
        }
    }

    fn refresh(&self) {
        match certified_key(&self.files, &self.provider) {
            Ok(read) => {
                let mut current = self.current.write().unwrap_or_else(PoisonError::into_inner);
                if current.cert != read.cert {
                    *current = Arc::new(read);
                    tracing::info!("the TLS certificate was replaced by the one in its file");
                }
            }
            Err(error) => {
                metrics::counter!("gateway_tls_reload_failures_total").increment(1);
                tracing::error!(error = %format!("{error:#}"), "the TLS certificate cannot be read again; the last one stays");
            }
        }
    }
}

impl ResolvesServerCert for Certificates {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        let current = self.current.read().unwrap_or_else(PoisonError::into_inner);
        Some(Arc::clone(&current))
    }
}

fn certified_key(files: &TlsSettings, provider: &CryptoProvider) -> anyhow::Result<CertifiedKey> {
    let path = &files.certificate_file;
    let named = || format!("TLS_CERTIFICATE_FILE {path}");
    let pem = fs::read(path).with_context(named)?;
    let chain: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&pem).collect();
    let chain = chain.context("it is no PEM file").with_context(named)?;
    if chain.is_empty() {
        anyhow::bail!("{}: there is no certificate in it", named());
    }
    let path = &files.private_key_file;
    let named = || format!("TLS_PRIVATE_KEY_FILE {path}");
    let pem = fs::read(path).with_context(named)?;
    // The library's error could show a part of the file.
    let key = PrivateKeyDer::from_pem_slice(&pem)
        .map_err(|_| anyhow::anyhow!("{}: there is no private key in PEM form in it", named()))?;
    CertifiedKey::from_der(chain, key, provider)
        .context("TLS_CERTIFICATE_FILE and TLS_PRIVATE_KEY_FILE cannot be used together")
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::time::Duration;

    use rcgen::{CertifiedKey, generate_simple_self_signed};
    use tempfile::TempDir;

    use super::{Certificates, TlsSettings};

    fn write(files: &TlsSettings) {
        let made = generate_simple_self_signed(["gateway.example".to_owned()]).unwrap();
        let CertifiedKey { cert, signing_key } = made;
        fs::write(&files.certificate_file, cert.pem()).unwrap();
        fs::write(&files.private_key_file, signing_key.serialize_pem()).unwrap();
    }

    #[test]
    fn a_renewed_certificate_is_taken_and_one_that_cannot_be_used_is_not() {
        let folder = TempDir::new().unwrap();
        let path = |name| folder.path().join(name).to_str().unwrap().to_owned();
        let files = TlsSettings {
            certificate_file: path("certificate.pem"),
            private_key_file: path("key.pem"),
            reload_interval: Duration::from_secs(60),
        };
        write(&files);
        let certificates = Certificates::read(&files).unwrap();
        let shown = || certificates.current.read().unwrap().cert.clone();
        let first = shown();

        let key = fs::read(&files.private_key_file).unwrap();
        write(&files);
        let fitting = fs::read(&files.private_key_file).unwrap();
        for unfit in [b"".as_slice(), b"no key".as_slice(), &key] {
            fs::write(&files.private_key_file, unfit).unwrap();
            certificates.refresh();
            assert_eq!(shown(), first);
        }
        fs::write(&files.private_key_file, fitting).unwrap();
        certificates.refresh();
        assert_ne!(shown(), first);
    }
}
