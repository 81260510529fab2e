//! TLS at the gateway's own port, with a certificate that can be renewed while the gateway runs.

mod files;

use std::sync::Arc;

use parking_lot::RwLock;
use rustls::ServerConfig;
use rustls::crypto::ring;
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use tokio_util::sync::CancellationToken;

use crate::settings::TlsSettings;
use files::load_key;

/// The certificate that is presented to callers, reloaded when its files change.
#[derive(Debug)]
pub(crate) struct Certificates {
    files: TlsSettings,
    current: RwLock<Arc<CertifiedKey>>,
}

impl Certificates {
    /// Loads the files.
    pub(crate) fn load(files: &TlsSettings) -> anyhow::Result<Arc<Self>> {
        Ok(Arc::new(Self {
            files: files.clone(),
            current: RwLock::new(Arc::new(load_key(files)?)),
        }))
    }

    /// The configuration of a port that serves TLS 1.2 and 1.3 with the certificate.
    ///
    /// # Errors
    /// None in practice: rustls supports these versions.
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
