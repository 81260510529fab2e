//! Certificates of servers that anyone may run.

use std::sync::Arc;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::CryptoProvider;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{DigitallySignedStruct, Error, SignatureScheme};
use rustls_platform_verifier::Verifier;

/// The largest number of certificates beside a server's own. No valid path has more.
const MAX_INTERMEDIATES: usize = 6;

/// Verifies certificates as the platform does, but looks at no more than a few.
///
/// Webpki tries every order of the certificates that a server sends before it looks at a signature. Sixty of them, which fit
/// into a handshake many times over, take a thread for many seconds, and nothing can interrupt it.
#[derive(Debug)]
pub(crate) struct FewCertificates(Verifier);

impl FewCertificates {
    pub(crate) fn new(provider: Arc<CryptoProvider>) -> Result<Self, Error> {
        Verifier::new(provider).map(Self)
    }
}

impl ServerCertVerifier for FewCertificates {
    fn verify_server_cert(
        &self,
        server: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        if intermediates.len() > MAX_INTERMEDIATES {
            let message =
                format!("the server has more than {MAX_INTERMEDIATES} certificates beside its own");
            return Err(Error::General(message));
        }
        let verifier = &self.0;
        verifier.verify_server_cert(server, intermediates, name, ocsp_response, now)
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let verifier = &self.0;
        verifier.verify_tls12_signature(message, certificate, signature)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let verifier = &self.0;
        verifier.verify_tls13_signature(message, certificate, signature)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.supported_verify_schemes()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use rustls::client::danger::ServerCertVerifier as _;
    use rustls::crypto::ring;
    use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
    use rustls::{CertificateError, Error};

    use super::{FewCertificates, MAX_INTERMEDIATES};

    #[test]
    fn many_certificates_are_not_looked_at() {
        let verifier = FewCertificates::new(Arc::new(ring::default_provider())).unwrap();
        let certificate = CertificateDer::from(vec![0]);
        let name = ServerName::try_from("a.example").unwrap();
        let verified = |number| {
            let others = vec![certificate.clone(); number];
            let now = UnixTime::now();
            verifier.verify_server_cert(&certificate, &others, &name, &[], now)
        };
        let few = verified(MAX_INTERMEDIATES).unwrap_err();
        assert_eq!(few, CertificateError::BadEncoding.into());
        let many = verified(MAX_INTERMEDIATES + 1).unwrap_err();
        assert!(matches!(many, Error::General(_)), "{many}");
    }
}
