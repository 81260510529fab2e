//! The client settings and errors that calls of other processes and of the flow engine share.

use std::time::Duration;

use reqwest::{Client, RequestBuilder, Response, redirect};
use telemetry::{CallOutcome, CertificateFault, RequestContext};
use url::Url;

/// The time for connecting, the request and the response together.
pub(crate) const CALL_TIMEOUT: Duration = Duration::from_secs(10);
const IDLE_CONNECTIONS_PER_HOST: usize = 8;

/// Why a call failed. It contains no address and no token, because callers of the API see it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum CallError {
    #[error("did not respond within {} s", CALL_TIMEOUT.as_secs())]
    Timeout,
    #[error("could not be reached")]
    Unreachable,
    #[error("has a certificate that was refused: {0}")]
    Certificate(CertificateFault),
    /// The connection ended, or the response was not HTTP.
    #[error("closed the connection")]
    Broken,
    #[error("responded with {0}")]
    Status(u16),
    /// A response whose body does not match the contract.
    #[error("sent an invalid response")]
    InvalidBody,
}

impl From<reqwest::Error> for CallError {
    fn from(error: reqwest::Error) -> Self {
        if error.is_timeout() {
            Self::Timeout
        } else if let Some(fault) = CertificateFault::find(&error) {
            Self::Certificate(fault)
        } else if error.is_connect() {
            Self::Unreachable
        } else if error.is_decode() {
            Self::InvalidBody
        } else {
            Self::Broken
        }
    }
}

/// A client that follows no redirects, uses no proxy, and gives every call [`CALL_TIMEOUT`].
pub(crate) fn client() -> Result<Client, reqwest::Error> {
    // The TLS library needs a process-wide provider. It fails when one is installed, which is this one.
    let _ = rustls::crypto::ring::default_provider().install_default();
    Client::builder()
        .no_proxy()
        .redirect(redirect::Policy::none())
        .connect_timeout(CALL_TIMEOUT)
        .timeout(CALL_TIMEOUT)
        .pool_max_idle_per_host(IDLE_CONNECTIONS_PER_HOST)
        // A recipient replaces each line end within a header by a space (RFC 9112 section 5.2).
        .http1_allow_obsolete_multiline_headers_in_responses(true)
        .user_agent(concat!("countersign/", env!("CARGO_PKG_VERSION")))
        .build()
}

/// Sends a request with the headers that identify the request that caused the work.
pub(crate) async fn send(
    destination: &'static str,
    request: RequestBuilder,
) -> Result<Response, CallError> {
    let sent = async {
        let context = RequestContext::current_or_fresh();
        let request = request
            .header("X-Request-Id", &context.request_id)
            .header("traceparent", context.trace.to_string());
        request.send().await
    };
    let outcome = |result: &Result<Response, _>| CallOutcome::of(result, |r| r.status().as_u16());
    Ok(telemetry::outgoing(destination, sent, outcome).await?)
}

/// The base, which may have a path itself, with more segments appended.
pub(crate) fn append_path(base: &Url, first: &[&str], then: &[&str]) -> Url {
    let mut url = base.clone();
    // Only URLs such as `mailto:` have no segments, and settings accept only http and https.
    if let Ok(mut segments) = url.path_segments_mut() {
        segments.pop_if_empty().extend(first).extend(then);
    }
    url
}

#[cfg(test)]
mod tests {
    use testkit::{PrivateCa, tls_in_front_of};

    use super::*;

    #[tokio::test]
    async fn a_refused_certificate_is_named() {
        let config = PrivateCa::new().server("localhost");
        let port = tls_in_front_of(([127, 0, 0, 1], 1).into(), config, false).await;
        let url = format!("https://localhost:{port}/");
        let error = client().unwrap().get(url).send().await.unwrap_err();
        let error = CallError::from(error).to_string();
        let expected = "has a certificate that was refused: unknown issuer";
        assert!(error.starts_with(expected), "{error}");
    }

    #[test]
    fn segments_are_appended_to_the_path_of_the_base() {
        for (base, expected) in [
            ("http://engine", "http://engine/users/u/flows/stop"),
            (
                "http://engine/api/v1/",
                "http://engine/api/v1/users/u/flows/stop",
            ),
            (
                "http://engine/api/v1",
                "http://engine/api/v1/users/u/flows/stop",
            ),
        ] {
            let base = Url::parse(base).unwrap();
            let url = append_path(&base, &["users", "u"], &["flows", "stop"]);
            assert_eq!(url.as_str(), expected);
        }
    }
}
