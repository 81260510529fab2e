use std::net::IpAddr;
use std::time::Duration;

use actix_web::body::SizedStream;
use actix_web::http::header::{CACHE_CONTROL, HeaderValue};
use actix_web::http::{Method, StatusCode};
use actix_web::{HttpResponse, HttpResponseBuilder};
use bytes::Bytes;
use fairness::Share;
use futures_util::{Stream, StreamExt as _, stream};
use http::{HeaderMap, Response};
use http_body_util::BodyExt as _;
use http_kit::Problem;
use hyper::body::{Body as _, Incoming};
use tokio::time::timeout;

use super::exchange::{dropped_response, invalid_response, upstream_timeout};
use super::headers::ForwardedName;
use crate::context::AppState;
use crate::limits::concurrency::{self, in_parts};
use crate::routes::{Access, Route};

/// The response headers that callers read. `content-length` is set with the body.
static FORWARDED: [ForwardedName; 17] = [
    ForwardedName::new("accept-encoding"),
    ForwardedName::new("allow"),
    ForwardedName::new("cache-control"),
    ForwardedName::new("content-disposition"),
    ForwardedName::new("content-language"),
    ForwardedName::new("content-security-policy"),
    ForwardedName::new("content-type"),
    ForwardedName::new("etag"),
    ForwardedName::new("idempotent-replayed"),
    ForwardedName::new("last-modified"),
    ForwardedName::new("link"),
    ForwardedName::new("location"),
    ForwardedName::new("ratelimit"),
    ForwardedName::new("ratelimit-policy"),
    ForwardedName::new("retry-after"),
    ForwardedName::new("vary"),
    ForwardedName::new("www-authenticate"),
];

pub(crate) fn forwarded_response_headers() -> impl Iterator<Item = &'static str> {
    FORWARDED.iter().map(|name| name.hyper.as_str())
}

/// The header with which only the routes of sessions set their cookie.
static SET_COOKIE: ForwardedName = ForwardedName::new("set-cookie");

/// The size that is counted for a response of unknown length.
const ASSUMED_LENGTH: u64 = 64 * 1024;

/// Responses up to this length are sent at once and not counted.
const UNCOUNTED: u64 = 16 * 1024;

/// Responses up to this length are read whole before they are sent.
const WHOLE: u64 = 64 * 1024;

/// Passes a response on to the caller: `502` for a response that none of the services would send, and `504` for a short one that
/// stalls. If too many bytes of responses are unread, `429` or `503`, or `502` if the request may have changed something.
pub(super) async fn relay(
    response: Response<Incoming>,
    state: &AppState,
    client: IpAddr,
    route: &Route,
) -> Result<HttpResponse, Problem> {
    let (given, body) = response.into_parts();
    let status = StatusCode::from_u16(given.status.as_u16()).map_err(|_| invalid_response())?;
    if status.is_informational() || (status.is_server_error() && !is_problem(&given.headers)) {
        return Err(invalid_response());
    }
    let mut builder = head(status, &given.headers, route.access);
    let empty = matches!(status, StatusCode::NO_CONTENT | StatusCode::NOT_MODIFIED);
    let length = body.size_hint().exact();
    if empty || length == Some(0) {
        return Ok(builder.finish());
    }
    let counted = length.unwrap_or(ASSUMED_LENGTH);
    let share = count(counted, state, client, &route.method)?;
    let read_timeout = state.settings.upstream_timeout;
    Ok(match length {
        Some(length) if length <= WHOLE => {
            let bytes = read(body, read_timeout).await?;
            match share {
                None => builder.body(bytes),
                Some(_) => builder.body(in_parts(bytes, share)),
            }
        }
        Some(length) => builder.body(SizedStream::new(length, chunks(body, share, read_timeout))),
        None => builder.streaming(chunks(body, share, read_timeout)),
    })
}

/// Counts the bytes of a long response until the client has read it.
fn count(
    bytes: u64,
    state: &AppState,
    client: IpAddr,
    method: &Method,
) -> Result<Option<Share<IpAddr>>, Problem> {
    if bytes <= UNCOUNTED {
        return Ok(None);
    }
    let shares = &state.concurrency.response_bytes;
    let share = concurrency::try_acquire(shares, client, bytes);
    share.map(Some).map_err(|refused| {
        let refusal = concurrency::refusal(refused);
        if method.is_safe() {
            refusal
        } else {
            dropped_response()
        }
    })
}

fn head(status: StatusCode, headers: &HeaderMap, access: Access) -> HttpResponseBuilder {
    let mut builder = HttpResponse::build(status);
    let cookie = (access == Access::Cookie).then_some(&SET_COOKIE);
    for name in FORWARDED.iter().chain(cookie) {
        for value in headers.get_all(&name.hyper) {
            if let Ok(value) = HeaderValue::from_bytes(value.as_bytes()) {
                builder.append_header((name.actix.clone(), value));
            }
        }
    }
    if !headers.contains_key(http::header::CACHE_CONTROL) {
        // Responses are per user: `no-store` by default.
        builder.insert_header((CACHE_CONTROL, "no-store"));
    }
    builder
}

fn is_problem(headers: &HeaderMap) -> bool {
    let content_type = headers.get(http::header::CONTENT_TYPE);
    let content_type = content_type.and_then(|value| value.to_str().ok());
    content_type.is_some_and(|value| value.starts_with("application/problem+json"))
}

#[derive(Debug, thiserror::Error)]
enum BodyError {
    #[error("the service's response was cut off")]
    Truncated(#[source] hyper::Error),
    #[error("the service's response stalled")]
    Stalled,
}

/// Reads a whole body: `504` if it stalls, `502` if it is cut off.
async fn read(body: Incoming, read_timeout: Duration) -> Result<Bytes, Problem> {
    let body = timeout(read_timeout, body.collect())
        .await
        .map_err(|_| upstream_timeout())?
        .map_err(|error| {
            tracing::warn!(?error, "a service did not send its whole response");
            invalid_response()
        })?;
    Ok(body.to_bytes())
}

/// The chunks of a body, which `share` counts until they end. An error closes the caller's connection, so that the
/// caller sees that the response is incomplete.
fn chunks(
    body: Incoming,
    share: Option<Share<IpAddr>>,
    read_timeout: Duration,
) -> impl Stream<Item = Result<Bytes, BodyError>> {
    let unread = Some((body.into_data_stream(), share));
    stream::unfold(unread, move |unread| async move {
        let (mut body, share) = unread?;
        match timeout(read_timeout, body.next()).await {
            Ok(Some(Ok(bytes))) => Some((Ok(bytes), Some((body, share)))),
            Ok(Some(Err(error))) => Some((Err(BodyError::Truncated(error)), None)),
            Ok(None) => None,
            Err(_) => Some((Err(BodyError::Stalled), None)),
        }
    })
}
