//! Sends a request to a service and waits for the head of its response.

use std::error::Error as _;
use std::io;
use std::iter::successors;
use std::time::Duration;

use http::{Method, Response};
use http_kit::Problem;
use hyper::body::Incoming;
use hyper_util::client::legacy::{Error, ResponseFuture};
use tokio::time::{sleep, timeout};

use super::error::{no_response, upstream_timeout};

/// The pause before the one retry of a request that could not reach its service.
const RETRY_PAUSE: Duration = Duration::from_millis(50);

/// Sends a request and waits for the head of the response, of which the body has not been read.
///
/// Unless it is a `POST`, a request is sent once more if no connection could be made, because then the service never saw
/// it. A request that changes nothing is also sent once more if its connection was closed without a response, as a service
/// does that stops or is killed.
///
/// # Errors
/// `502` or `504` if there is no response within the time limit.
pub(super) async fn exchange(
    method: &Method,
    send: impl Fn() -> ResponseFuture,
    time_limit: Duration,
) -> Result<Response<Incoming>, Problem> {
    let attempt = async || {
        timeout(time_limit, send())
            .await
            .map_err(|_| upstream_timeout())
    };
    let response = match attempt().await? {
        Err(error)
            if *method != Method::POST && was_refused(&error)
                || method.is_safe() && was_closed(&error) =>
        {
            sleep(RETRY_PAUSE).await;
            attempt().await?
        }
        response => response,
    };
    response.map_err(|error| no_response(&error))
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
