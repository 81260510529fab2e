use actix_web::http::StatusCode;
use http_kit::Problem;
use hyper_util::client::legacy::Error;
use telemetry::CertificateFault;

/// `504 upstream-timeout`.
pub(super) fn upstream_timeout() -> Problem {
    count_failure("timeout");
    let detail = "The service behind the gateway took too long. The request may still take effect.";
    Problem::new(StatusCode::GATEWAY_TIMEOUT, "upstream-timeout", detail)
}

/// `502 bad-gateway` for a service that could not be reached or did not respond.
pub(super) fn no_response(error: &Error) -> Problem {
    let connected = !error.is_connect();
    match CertificateFault::find(error) {
        Some(fault) => tracing::warn!(%fault, "the certificate of a service was refused"),
        None => tracing::warn!(?error, connected, "a service did not respond"),
    }
    let (kind, detail) = if connected {
        (
            "broken",
            "The service behind the gateway closed the connection. The request may have taken effect.",
        )
    } else {
        (
            "unreachable",
            "The service behind the gateway cannot be reached. Nothing was changed; try again soon.",
        )
    };
    count_failure(kind);
    bad_gateway(detail)
}

/// `400 malformed-request` for a request that has no address at its service.
pub(super) fn malformed(error: &http::Error) -> Problem {
    tracing::warn!(%error, "a request cannot be forwarded");
    let detail = "The request cannot be passed on to its service.";
    Problem::new(StatusCode::BAD_REQUEST, "malformed-request", detail)
}

/// `502 bad-gateway` for a response that none of the services would send.
pub(super) fn invalid_response() -> Problem {
    count_failure("broken");
    bad_gateway("The service behind the gateway sent an invalid response.")
}

fn bad_gateway(detail: &'static str) -> Problem {
    Problem::new(StatusCode::BAD_GATEWAY, "bad-gateway", detail)
}

fn count_failure(kind: &'static str) {
    metrics::counter!("gateway_upstream_failures_total", "kind" => kind).increment(1);
}
