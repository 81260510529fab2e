use std::error::Error;
use std::io;

use rustls::CertificateError;

/// Why the certificate of a server that was called was refused. Without this, logs would say that the server could not be
/// reached, and send the operator to the network.
///
/// It names no host and repeats nothing of the certificate: callers of the API see it, too, and anyone may have made the
/// certificate.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct CertificateFault(&'static str);

impl CertificateFault {
    /// Finds the fault among the causes of an error.
    pub fn find(error: &(dyn Error + 'static)) -> Option<Self> {
        match tls_error(error)? {
            rustls::Error::InvalidCertificate(fault) => Some(Self(describe(fault))),
            _ => None,
        }
    }
}

fn describe(fault: &CertificateError) -> &'static str {
    match fault {
        CertificateError::UnknownIssuer => {
            "unknown issuer: its CA is not in the trust store of the system"
        }
        CertificateError::BadSignature => {
            "unknown issuer: the CA of its name in the trust store of the system has another key"
        }
        CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => {
            "host name mismatch: it was issued for other names"
        }
        CertificateError::Expired | CertificateError::ExpiredContext { .. } => "it has expired",
        CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => {
            "it is not valid yet"
        }
        CertificateError::Revoked => "it was revoked",
        CertificateError::BadEncoding => "it is not an X.509 certificate",
        CertificateError::InvalidPurpose | CertificateError::InvalidPurposeContext { .. } => {
            "it was not issued for servers"
        }
        CertificateError::UnsupportedSignatureAlgorithmContext { .. }
        | CertificateError::UnsupportedSignatureAlgorithmForPublicKeyContext { .. } => {
            "its signature algorithm is not supported"
        }
        _ => "it is not acceptable",
    }
}

/// Finds the error of the TLS library among the causes of an error.
pub fn tls_error<'e>(error: &'e (dyn Error + 'static)) -> Option<&'e rustls::Error> {
    let mut cause = Some(error);
    while let Some(error) = cause {
        if let Some(tls) = error.downcast_ref() {
            return Some(tls);
        }
        // An I/O error does not list the error that it wraps among its sources.
        let wrapped = error
            .downcast_ref::<io::Error>()
            .and_then(io::Error::get_ref);
        cause = match wrapped {
            Some(wrapped) => Some(wrapped as &'e (dyn Error + 'static)),
            None => error.source(),
        };
    }
    None
}

#[cfg(test)]
mod tests {
    use rustls::OtherError;

    use super::*;

    #[test]
    fn a_fault_is_found_in_nested_io_errors() {
        let fault = rustls::Error::InvalidCertificate(CertificateError::UnknownIssuer);
        let inner = io::Error::new(io::ErrorKind::InvalidData, fault);
        let outer = rustls::Error::Other(OtherError(std::sync::Arc::new(io::Error::other("x"))));
        let nested = io::Error::other(io::Error::other(inner));
        let found = CertificateFault::find(&nested).unwrap().to_string();
        assert!(found.starts_with("unknown issuer"), "{found}");
        assert_eq!(CertificateFault::find(&outer), None);
        assert_eq!(CertificateFault::find(&io::Error::other("refused")), None);
    }

    #[test]
    fn the_text_names_the_fault() {
        for (error, expected) in [
            (CertificateError::NotValidForName, "host name mismatch"),
            (CertificateError::Expired, "expired"),
            (CertificateError::NotValidYet, "not valid yet"),
            // Its own text has all of the algorithm, whose length the server chooses.
            (
                CertificateError::UnsupportedSignatureAlgorithmContext {
                    signature_algorithm_id: vec![255; 32 * 1024],
                    supported_algorithms: Vec::new(),
                },
                "its signature algorithm is not supported",
            ),
        ] {
            let text = describe(&error);
            assert!(text.contains(expected), "{text}");
        }
    }
}
