use std::error::Error as StdError;
use std::io;
use std::time::Duration;

use hyper_util::client::legacy::Error;
use telemetry::CertificateFault;
use tower::timeout::error::Elapsed;

use crate::{Refusal, Unresolved};

/// Why a request had no response, in words for the owner of the webhook.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SendError {
    /// The policy does not permit the URL or an address of its host.
    #[error("{}", without_address(.0))]
    Refused(Refusal),
    /// The caller of the client sent nothing, for this reason.
    #[error("{0}")]
    NotSent(String),
    /// The caller of the client sent nothing, because it sends too much else.
    #[error("too much was being sent already")]
    Full,
    /// The host does not resolve, or was not looked up.
    #[error(transparent)]
    Unresolved(#[from] Unresolved),
    /// No process listens on the port.
    #[error("connection refused")]
    ConnectionRefused,
    /// No response arrived in time.
    #[error("timed out after {} s", .0.as_secs_f64())]
    TimedOut(Duration),
    /// The server's certificate was refused.
    #[error("the server's certificate was refused: {0}")]
    Certificate(CertificateFault),
    /// The TLS handshake failed.
    #[error("TLS: {0}")]
    Tls(String),
    /// The connection failed for another reason.
    #[error("the connection failed: {0}")]
    Broken(String),
}

/// The owner must not learn what a host name resolves to inside the operator's network.
fn without_address(refusal: &Refusal) -> String {
    match refusal {
        Refusal::NotPublic(_) => "the host's address is not allowed".to_owned(),
        Refusal::Scheme | Refusal::NoHost => refusal.to_string(),
    }
}

impl From<Refusal> for SendError {
    fn from(refusal: Refusal) -> Self {
        // Only the operator reads the log, and may want to allow the address.
        tracing::warn!(%refusal, "a call was refused");
        Self::Refused(refusal)
    }
}

impl SendError {
    /// Finds the reason among the causes of the client's error.
    pub(crate) fn of(error: &Error, limit: Duration) -> Self {
        let mut timed_out = false;
        let mut innermost = error.to_string();
        let mut cause: Option<&(dyn StdError + 'static)> = error.source();
        while let Some(error) = cause {
            if let Some(reason) = known(error) {
                return reason;
            }
            let io = error.downcast_ref::<io::Error>();
            timed_out |= io.is_some_and(|io| io.kind() == io::ErrorKind::TimedOut);
            timed_out |= error.is::<Elapsed>();
            innermost = error.to_string();
            cause = error.source();
        }
        if timed_out {
            Self::TimedOut(limit)
        } else {
            Self::Broken(innermost)
        }
    }
}

fn known(error: &(dyn StdError + 'static)) -> Option<SendError> {
    if let Some(refusal) = error.downcast_ref::<Refusal>() {
        return Some(refusal.clone().into());
    }
    if let Some(unresolved) = error.downcast_ref::<Unresolved>() {
        return Some((*unresolved).into());
    }
    if let Some(tls) = error.downcast_ref::<rustls::Error>() {
        return Some(match CertificateFault::find(tls) {
            Some(fault) => SendError::Certificate(fault),
            None => SendError::Tls(tls.to_string()),
        });
    }
    let io = error.downcast_ref::<io::Error>()?;
    if io.kind() == io::ErrorKind::ConnectionRefused {
        return Some(SendError::ConnectionRefused);
    }
    // An I/O error does not list the error that it wraps among its sources.
    io.get_ref().and_then(|wrapped| known(wrapped))
}
