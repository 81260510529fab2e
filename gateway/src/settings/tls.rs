use std::time::Duration;

use app_config::Reader;

/// The files of a certificate.
#[derive(Debug, Clone)]
pub struct TlsSettings {
    /// The certificate, then the intermediate certificates of its authority, in PEM format.
    pub certificate_file: String,
    /// The certificate's private key, in PEM format.
    pub private_key_file: String,
    /// How often both are read again.
    pub reload_interval: Duration,
}

impl TlsSettings {
    /// `None` if neither file is set.
    ///
    /// # Errors
    /// Only one of the two is set, or the interval is invalid.
    pub(crate) fn read(reader: &mut Reader) -> Result<Option<Self>, app_config::Error> {
        const CERTIFICATE: &str = "TLS_CERTIFICATE_FILE";
        const KEY: &str = "TLS_PRIVATE_KEY_FILE";
        let certificate_file = reader.optional(
            CERTIFICATE,
            "The file with the certificate and its chain in PEM format. If set, the gateway serves TLS itself.",
        )?;
        let private_key_file = reader.optional(
            KEY,
            "The file with the private key of `TLS_CERTIFICATE_FILE`, in PEM format.",
        )?;
        let reload_interval = reader.in_range(
            "TLS_RELOAD_INTERVAL",
            "60s",
            "a duration from 100ms to 1d",
            "How often the two files are read again, so that a renewed certificate needs no restart.",
            |time| (Duration::from_millis(100)..=Duration::from_secs(86_400)).contains(time),
        )?;
        let missing = |name| app_config::Error::Missing {
            name,
            allowed: "a file in PEM format",
            purpose: "required because TLS_CERTIFICATE_FILE and TLS_PRIVATE_KEY_FILE go together.",
            secret: false,
        };
        match (certificate_file, private_key_file) {
            (None, None) => Ok(None),
            (Some(certificate_file), Some(private_key_file)) => Ok(Some(Self {
                certificate_file,
                private_key_file,
                reload_interval,
            })),
            (Some(_), None) => Err(missing(KEY)),
            (None, Some(_)) => Err(missing(CERTIFICATE)),
        }
    }
}
