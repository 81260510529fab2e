//! What the calls to the flow engine and to the people-task service have in common.

use std::time::Duration;

use reqwest::{Client, RequestBuilder, redirect};
use telemetry::RequestContext;
use url::Url;

/// Connecting, asking and answering together.
pub(crate) const CALL_TIMEOUT: Duration = Duration::from_secs(10);
const IDLE_CONNECTIONS_PER_HOST: usize = 8;

/// Why a call had no usable answer. It names no address and no token, because it is shown to callers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum CallError {
    /// No answer in time.
    #[error("did not answer within {} s", CALL_TIMEOUT.as_secs())]
    Timeout,
    /// No connection.
    #[error("could not be reached")]
    Unreachable,
    /// The connection ended, or what came was no HTTP.
    #[error("broke the connection off")]
    Broken,
    /// An answer that does not mean "done".
    #[error("answered {0}")]
    Status(u16),
    /// An answer whose body was not the one that was agreed.
    #[error("answered something unintelligible")]
    Unintelligible,
}

impl From<reqwest::Error> for CallError {
    fn from(error: reqwest::Error) -> Self {
        if error.is_timeout() {
            Self::Timeout
        } else if error.is_connect() {
            Self::Unreachable
        } else if error.is_decode() {
            Self::Unintelligible
        } else {
            Self::Broken
        }
    }
}

/// A client that follows no redirects and no proxy, and waits for nothing longer than [`CALL_TIMEOUT`].
///
/// # Errors
/// When no HTTP client can be made.
pub(crate) fn client() -> Result<Client, reqwest::Error> {
    // The TLS library wants its cryptography chosen once; a second choice would be the same one.
    let _ = rustls::crypto::ring::default_provider().install_default();
    Client::builder()
        .no_proxy()
        .redirect(redirect::Policy::none())
        .connect_timeout(CALL_TIMEOUT)
        .timeout(CALL_TIMEOUT)
        .pool_max_idle_per_host(IDLE_CONNECTIONS_PER_HOST)
        .user_agent(concat!("countersign/", env!("CARGO_PKG_VERSION")))
        .build()
}

/// Adds the identity of the request that caused the work.
pub(crate) fn with_context(request: RequestBuilder) -> RequestBuilder {
    let context = RequestContext::current_or_fresh();
    request
        .header("X-Request-Id", &context.request_id)
        .header("traceparent", context.trace.to_string())
}

/// The url of a path below a base, which may have a path of its own.
pub(crate) fn below(base: &Url, first: &[&str], then: &[&str]) -> Url {
    let mut url = base.clone();
    // Settings take http and https urls only, and those can always be extended.
    if let Ok(mut segments) = url.path_segments_mut() {
        segments.pop_if_empty().extend(first).extend(then);
    }
    url
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_base_with_a_path_is_extended() {
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
            let url = below(&base, &["users", "u"], &["flows", "stop"]);
            assert_eq!(url.as_str(), expected);
        }
    }
}
