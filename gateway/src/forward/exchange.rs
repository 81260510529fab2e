//! One request to a service, until its answer begins.

use std::time::Duration;

use actix_web::http::StatusCode;
use actix_web::web::Payload;
use futures_util::future::{Either, select};
use futures_util::pin_mut;
use http_kit::Problem;
use reqwest::header::{CONTENT_LENGTH, HeaderMap};
use reqwest::{Client, Method, Response};
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::{Instant, sleep, timeout};
use url::Url;

use super::request_body::{Framing, Inlet, pipe};
use crate::gateway::Gateway;

/// Before a request that could not reach its service is tried once more.
const RETRY_PAUSE: Duration = Duration::from_millis(50);

/// A request as a service shall see it.
pub(super) struct Outgoing {
    pub(super) method: Method,
    pub(super) url: Url,
    pub(super) headers: HeaderMap,
    pub(super) framing: Framing,
}

/// The beginning of a service's answer. The inlet keeps an unfinished request body open while a service
/// that did not wait for it answers.
pub(super) struct Answer {
    pub(super) response: Response,
    pub(super) inlet: Option<Inlet>,
    /// The request's place among those in flight, until here; none while its body is still arriving.
    pub(super) place: Option<OwnedSemaphorePermit>,
}

/// Why there is no answer.
#[derive(Debug)]
pub(super) enum Failure {
    /// What is wrong with the caller's body, or that there is no place for the request: no service is to
    /// blame.
    Caller(Problem),
    /// The service could not be reached or gave no answer: `502` or `504`.
    Service(Problem),
}

/// Sends a request and waits for the answer's head.
///
/// # Errors
/// Whose fault it is that there is none.
pub(super) async fn exchange(
    gateway: &Gateway,
    client: &Client,
    outgoing: Outgoing,
    payload: Payload,
) -> Result<Answer, Failure> {
    let Outgoing {
        method,
        url,
        headers,
        framing,
    } = outgoing;
    let repeatable = method != Method::POST && framing == Framing::Empty;
    let request = client.request(method, url).headers(headers);
    match framing {
        Framing::Empty => {
            let place = gateway.enter().map_err(Failure::Caller)?;
            let answer = if repeatable {
                send_twice(gateway, request).await?
            } else {
                send(gateway, request).await?
            };
            Ok(Answer {
                place: Some(place),
                ..answer
            })
        }
        Framing::Announced(length) => {
            send_with_body(gateway, request.header(CONTENT_LENGTH, length), payload).await
        }
        Framing::Chunked => send_with_body(gateway, request, payload).await,
    }
}

async fn send(gateway: &Gateway, request: reqwest::RequestBuilder) -> Result<Answer, Failure> {
    let response = begun(gateway, request.send()).await?.map_err(failed)?;
    Ok(Answer {
        response,
        inlet: None,
        place: None,
    })
}

/// Tries an idempotent request again if no connection could be made: then the service never saw it.
async fn send_twice(
    gateway: &Gateway,
    request: reqwest::RequestBuilder,
) -> Result<Answer, Failure> {
    let Some(again) = request.try_clone() else {
        return send(gateway, request).await;
    };
    match begun(gateway, request.send()).await? {
        Err(error) if error.is_connect() && !error.is_timeout() => {
            sleep(RETRY_PAUSE).await;
            send(gateway, again).await
        }
        response => Ok(Answer {
            response: response.map_err(failed)?,
            inlet: None,
            place: None,
        }),
    }
}

async fn send_with_body(
    gateway: &Gateway,
    request: reqwest::RequestBuilder,
    payload: Payload,
) -> Result<Answer, Failure> {
    let arriving = gateway.receive().map_err(Failure::Caller)?;
    let (inlet, body) = pipe();
    let sending = request.body(body).send();
    pin_mut!(sending);
    let (response, place) = {
        let deadline = Instant::now() + gateway.body_timeout;
        let filling = inlet.fill(payload, deadline, gateway);
        pin_mut!(filling);
        match select(filling, &mut sending).await {
            Either::Left((filled, _)) => (None, filled?),
            Either::Right((response, _)) => (Some(response), None),
        }
    };
    drop(arriving);
    let response = match response {
        Some(response) => response,
        None => begun(gateway, sending).await?,
    };
    let response = response.map_err(failed)?;
    Ok(Answer {
        response,
        inlet: Some(inlet),
        place,
    })
}

async fn begun<F>(gateway: &Gateway, sending: F) -> Result<reqwest::Result<Response>, Failure>
where
    F: Future<Output = reqwest::Result<Response>>,
{
    let answer = timeout(gateway.upstream_timeout, sending).await;
    answer.map_err(|_| timed_out())
}

/// `504 upstream-timeout`.
pub(super) fn timed_out() -> Failure {
    metrics::counter!("gateway_upstream_failures_total", "kind" => "timeout").increment(1);
    let detail =
        "The service behind the gateway took too long. What you asked for may still happen.";
    Failure::Service(Problem::new(
        StatusCode::GATEWAY_TIMEOUT,
        "upstream-timeout",
        detail,
    ))
}

fn failed(error: reqwest::Error) -> Failure {
    // The address holds the query, which may hold a secret.
    let error = error.without_url();
    if error.is_builder() {
        // The library could not write the request down, so the service has no part in it.
        tracing::warn!(error = ?error, "a request cannot be passed on");
        let detail = "The request cannot be passed on to its service as it is.";
        return Failure::Caller(Problem::new(
            StatusCode::BAD_REQUEST,
            "malformed-request",
            detail,
        ));
    }
    let reached = !error.is_connect();
    tracing::warn!(error = ?error, reached, "a service could not be asked");
    let (kind, detail) = if reached {
        (
            "broken",
            "The service behind the gateway broke its answer off. What you asked for may have happened.",
        )
    } else {
        (
            "unreachable",
            "The service behind the gateway cannot be reached. Nothing happened; try again soon.",
        )
    };
    metrics::counter!("gateway_upstream_failures_total", "kind" => kind).increment(1);
    Failure::Service(Problem::new(StatusCode::BAD_GATEWAY, "bad-gateway", detail))
}

/// `502 bad-gateway` for an answer that no service of ours would give.
pub(super) fn broken() -> Problem {
    metrics::counter!("gateway_upstream_failures_total", "kind" => "broken").increment(1);
    let detail = "The service behind the gateway gave an answer that makes no sense.";
    Problem::new(StatusCode::BAD_GATEWAY, "bad-gateway", detail)
}
