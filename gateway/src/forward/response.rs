//! Streams a service's response to the caller.

use std::net::IpAddr;
use std::time::Duration;

use actix_web::body::SizedStream;
use actix_web::http::header::{CACHE_CONTROL, CONTENT_TYPE, HeaderName, HeaderValue};
use actix_web::http::{Method, StatusCode};
use actix_web::{HttpResponse, HttpResponseBuilder};
use bytes::Bytes;
use futures_util::{Stream, stream};
use http_kit::{Problem, Share};
use reqwest::Response;
use tokio::time::timeout;

use super::error::invalid_response;
use crate::context::AppState;
use crate::limits::concurrency;

/// The response headers that callers read. `content-length` is set with the body.
const FORWARDED: [&str; 14] = [
    "allow",
    "cache-control",
    "content-disposition",
    "content-language",
    "content-type",
    "etag",
    "last-modified",
    "link",
    "location",
    "ratelimit",
    "ratelimit-policy",
    "retry-after",
    "vary",
    "www-authenticate",
];

/// The size that is counted for a response of unknown length.
const ASSUMED_LENGTH: u64 = 64 * 1024;

/// Responses up to this length are sent at once and not counted.
const UNCOUNTED: u64 = 16 * 1024;

/// Streams a response to the caller.
///
/// # Errors
/// `502 bad-gateway` for a response that none of the services would send. If too many bytes of responses
/// are unread, `429` or `503`, or `502` if the request may have changed something.
pub(super) fn relay(
    response: Response,
    state: &AppState,
    client: IpAddr,
    method: &Method,
) -> Result<HttpResponse, Problem> {
    let status =
        StatusCode::from_u16(response.status().as_u16()).map_err(|_| invalid_response())?;
    if status.is_informational() || (status.is_server_error() && !is_problem(&response)) {
        return Err(invalid_response());
    }
    let mut builder = head(status, &response);
    let empty = matches!(status, StatusCode::NO_CONTENT | StatusCode::NOT_MODIFIED);
    let length = response.content_length();
    if empty || length == Some(0) {
        return Ok(builder.finish());
    }
    let share = count(length.unwrap_or(ASSUMED_LENGTH), state, client, method)?;
    let body = Body {
        response,
        _share: share,
        read_timeout: state.upstream_timeout,
    };
    Ok(match length {
        Some(length) => builder.body(SizedStream::new(length, chunks(body))),
        None => builder.streaming(chunks(body)),
    })
}

/// Counts the bytes of a long response until the client has read it.
fn count(
    bytes: u64,
    state: &AppState,
    client: IpAddr,
    method: &Method,
) -> Result<Option<Share>, Problem> {
    if bytes <= UNCOUNTED {
        return Ok(None);
    }
    let share = state.concurrency.response_bytes.acquire(client, bytes);
    share.map(Some).map_err(|error| {
        if method.is_safe() {
            concurrency::refusal(error)
        } else {
            invalid_response()
        }
    })
}

fn head(status: StatusCode, response: &Response) -> HttpResponseBuilder {
    let mut builder = HttpResponse::build(status);
    for name in FORWARDED {
        for value in response.headers().get_all(name) {
            if let Ok(value) = HeaderValue::from_bytes(value.as_bytes()) {
                builder.append_header((HeaderName::from_static(name), value));
            }
        }
    }
    if !response.headers().contains_key(CACHE_CONTROL.as_str()) {
        // Responses are per user: `no-store` by default.
        builder.insert_header((CACHE_CONTROL, "no-store"));
    }
    builder
}

fn is_problem(response: &Response) -> bool {
    let content_type = response.headers().get(CONTENT_TYPE.as_str());
    let content_type = content_type.and_then(|value| value.to_str().ok());
    content_type.is_some_and(|value| value.starts_with("application/problem+json"))
}

struct Body {
    response: Response,
    _share: Option<Share>,
    read_timeout: Duration,
}

#[derive(Debug, thiserror::Error)]
enum BodyError {
    #[error("the service's response was cut off")]
    Truncated(#[source] reqwest::Error),
    #[error("the service's response stalled")]
    Stalled,
}

/// The chunks of a response. An error closes the caller's connection, so that the caller sees that the
/// response is incomplete.
fn chunks(body: Body) -> impl Stream<Item = Result<Bytes, BodyError>> {
    stream::unfold(Some(body), |body| async {
        let mut body = body?;
        match timeout(body.read_timeout, body.response.chunk()).await {
            Ok(Ok(Some(bytes))) => Some((Ok(bytes), Some(body))),
            Ok(Ok(None)) => None,
            Ok(Err(error)) => Some((Err(BodyError::Truncated(error.without_url())), None)),
            Err(_) => Some((Err(BodyError::Stalled), None)),
        }
    })
}
