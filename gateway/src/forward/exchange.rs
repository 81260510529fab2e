//! Sends a request to a service and waits for the head of its response, and what is said if there is none.

use std::error::Error as _;
use std::io;
use std::iter::successors;
use std::time::Duration;

use actix_web::http::{Method, StatusCode};
use http::Response;
use http_kit::Problem;
use hyper::body::Incoming;
use hyper_util::client::legacy::{Error, ResponseFuture};
use telemetry::{CertificateFault, Outage};
use tokio::time::{sleep, timeout};
use values::Names as _;

use crate::routes::Route;

/// The pause before the one retry of a request that could not reach its service.
const RETRY_PAUSE: Duration = Duration::from_millis(50);

/// Sends a request and waits for the head of the response, of which the body has not been read.
///
/// Unless it is a `POST`, a request is sent once more if no connection could be made, because then the service never saw
/// it. A request that changes nothing is also sent once more if its connection was closed without a response, as a service
/// does that stops or is killed. That there is no response is logged as an outage of its service.
pub(super) async fn exchange(
    route: &Route,
    send: impl Fn() -> ResponseFuture,
    time_limit: Duration,
    outage: &Outage,
) -> Result<Response<Incoming>, Problem> {
    let attempt = async || {
        timeout(time_limit, send())
            .await
            .map_err(|_| upstream_timeout())
    };
    let response = match attempt().await? {
        Err(error)
            if route.method != Method::POST && was_refused(&error)
                || route.reads() && was_closed(&error) =>
        {
            sleep(RETRY_PAUSE).await;
            attempt().await?
        }
        response => response,
    };
    response.map_err(|error| no_response(&error, route, outage))
}

/// Whether no connection could be made, and not because it took too long.
fn was_refused(error: &Error) -> bool {
    let timed_out = successors(error.source(), |&cause| cause.source())
        .filter_map(|cause| cause.downcast_ref::<io::Error>())
        .any(|cause| cause.kind() == io::ErrorKind::TimedOut);
    error.is_connect() && !timed_out
}

/// Whether the connection was closed before the head of a response had arrived.
fn was_closed(error: &Error) -> bool {
    successors(error.source(), |&cause| cause.source())
        .filter_map(|cause| cause.downcast_ref::<hyper::Error>())
        .any(hyper::Error::is_incomplete_message)
}

pub(super) fn upstream_timeout() -> Problem {
    count_failure("timeout");
    let detail = "The service behind the gateway took too long. The request may still take effect.";
    Problem::new(StatusCode::GATEWAY_TIMEOUT, "upstream-timeout", detail)
}

/// `502 bad-gateway` for a service that could not be reached or did not respond.
fn no_response(error: &Error, route: &Route, outage: &Outage) -> Problem {
    let connected = !error.is_connect();
    let service = route.service.name();
    match CertificateFault::find(error) {
        Some(fault) => outage.fail(&format_args!("{service}: certificate refused: {fault}")),
        None => outage.fail(&format_args!(
            "{service}, connected: {connected}: {error:?}"
        )),
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

/// `502 bad-gateway` for a response that finds no room beside those that callers have not read yet.
pub(super) fn dropped_response() -> Problem {
    bad_gateway(
        "The response was dropped, because too many others have not been read yet. The request may have taken effect.",
    )
}

fn bad_gateway(detail: &'static str) -> Problem {
    Problem::new(StatusCode::BAD_GATEWAY, "bad-gateway", detail)
}

fn count_failure(kind: &'static str) {
    metrics::counter!("gateway_upstream_failures_total", "kind" => kind).increment(1);
}
