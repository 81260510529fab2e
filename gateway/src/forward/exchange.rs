//! Sends a request to a service and waits for the head of its response.

use std::time::Duration;

use reqwest::header::HeaderMap;
use reqwest::{Client, Method, RequestBuilder, Response};
use tokio::time::{sleep, timeout};
use url::Url;

use super::error::ForwardError;
use super::request_body::RequestBody;

/// The pause before the one retry of a request that could not reach its service.
const RETRY_PAUSE: Duration = Duration::from_millis(50);

/// A request as it is sent to a service.
pub(super) struct UpstreamRequest {
    pub(super) method: Method,
    pub(super) url: Url,
    pub(super) headers: HeaderMap,
    pub(super) body: Option<RequestBody>,
}

/// Sends a request and waits for the head of the response, of which the body has not been read.
///
/// # Errors
/// There is no response within the time limit.
pub(super) async fn exchange(
    client: &Client,
    request: UpstreamRequest,
    time_limit: Duration,
) -> Result<Response, ForwardError> {
    let UpstreamRequest {
        method,
        url,
        headers,
        body,
    } = request;
    let idempotent = method != Method::POST;
    let mut request = client.request(method, url).headers(headers);
    if let Some(body) = &body {
        request = request.body(body.bytes.clone());
    }
    if idempotent {
        send_with_retry(request, time_limit).await
    } else {
        Ok(await_response(request.send(), time_limit).await??)
    }
}

/// Retries once if no connection could be made, because then the service never saw the request.
async fn send_with_retry(
    request: RequestBuilder,
    time_limit: Duration,
) -> Result<Response, ForwardError> {
    let Some(retry) = request.try_clone() else {
        return Ok(await_response(request.send(), time_limit).await??);
    };
    match await_response(request.send(), time_limit).await? {
        Err(error) if error.is_connect() && !error.is_timeout() => {
            sleep(RETRY_PAUSE).await;
            Ok(await_response(retry.send(), time_limit).await??)
        }
        response => Ok(response?),
    }
}

async fn await_response<F>(
    sending: F,
    time_limit: Duration,
) -> Result<reqwest::Result<Response>, ForwardError>
where
    F: Future<Output = reqwest::Result<Response>>,
{
    let response = timeout(time_limit, sending).await;
    response.map_err(|_| ForwardError::timeout())
}
