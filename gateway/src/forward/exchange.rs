//! Sends a request to a service and waits for the head of its response.

use std::time::Duration;

use actix_web::web::Payload;
use futures_util::future::{Either, select};
use futures_util::pin_mut;
use reqwest::header::{CONTENT_LENGTH, HeaderMap};
use reqwest::{Client, Method, RequestBuilder, Response};
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::{Instant, sleep, timeout};
use url::Url;

use super::error::ForwardError;
use super::request_body::{BodySender, Framing, body_channel};
use crate::context::AppState;

/// The pause before the one retry of a request that could not reach its service.
const RETRY_PAUSE: Duration = Duration::from_millis(50);

/// A request as it is sent to a service.
pub(super) struct UpstreamRequest {
    pub(super) method: Method,
    pub(super) url: Url,
    pub(super) headers: HeaderMap,
    pub(super) framing: Framing,
}

/// A service's response, of which only the head has been read.
pub(super) struct UpstreamResponse {
    pub(super) response: Response,
    /// Keeps an unfinished request body open while a service that did not wait for it responds.
    pub(super) body_sender: Option<BodySender>,
    /// `None` if the service responded before the request body was complete.
    pub(super) in_flight: Option<OwnedSemaphorePermit>,
}

/// Sends a request and waits for the head of the response.
///
/// # Errors
/// There is no response.
pub(super) async fn exchange(
    state: &AppState,
    client: &Client,
    request: UpstreamRequest,
    payload: Payload,
) -> Result<UpstreamResponse, ForwardError> {
    let UpstreamRequest {
        method,
        url,
        headers,
        framing,
    } = request;
    let idempotent = method != Method::POST;
    let request = client.request(method, url).headers(headers);
    match framing {
        Framing::Empty => {
            let permit = state.acquire_in_flight().map_err(ForwardError::Caller)?;
            let response = if idempotent {
                send_with_retry(state, request).await?
            } else {
                await_response(state, request.send()).await??
            };
            Ok(UpstreamResponse {
                response,
                body_sender: None,
                in_flight: Some(permit),
            })
        }
        Framing::ContentLength(length) => {
            send_with_body(state, request.header(CONTENT_LENGTH, length), payload).await
        }
        Framing::Chunked => send_with_body(state, request, payload).await,
    }
}

/// Retries once if no connection could be made, because then the service never saw the request.
async fn send_with_retry(
    state: &AppState,
    request: RequestBuilder,
) -> Result<Response, ForwardError> {
    let Some(retry) = request.try_clone() else {
        return Ok(await_response(state, request.send()).await??);
    };
    match await_response(state, request.send()).await? {
        Err(error) if error.is_connect() && !error.is_timeout() => {
            sleep(RETRY_PAUSE).await;
            Ok(await_response(state, retry.send()).await??)
        }
        response => Ok(response?),
    }
}

async fn send_with_body(
    state: &AppState,
    request: RequestBuilder,
    payload: Payload,
) -> Result<UpstreamResponse, ForwardError> {
    let upload = state.acquire_upload().map_err(ForwardError::Caller)?;
    let (body_sender, body) = body_channel();
    let sending = request.body(body).send();
    pin_mut!(sending);
    let (response, in_flight) = {
        let deadline = Instant::now() + state.body_timeout;
        let uploading = body_sender.forward(payload, deadline, state);
        pin_mut!(uploading);
        match select(uploading, &mut sending).await {
            Either::Left((permit, _)) => (None, permit?),
            Either::Right((response, _)) => (Some(response), None),
        }
    };
    drop(upload);
    let response = match response {
        Some(response) => response,
        None => await_response(state, sending).await?,
    };
    Ok(UpstreamResponse {
        response: response?,
        body_sender: Some(body_sender),
        in_flight,
    })
}

async fn await_response<F>(
    state: &AppState,
    sending: F,
) -> Result<reqwest::Result<Response>, ForwardError>
where
    F: Future<Output = reqwest::Result<Response>>,
{
    let response = timeout(state.upstream_timeout, sending).await;
    response.map_err(|_| ForwardError::timeout())
}
