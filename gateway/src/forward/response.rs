//! A service's answer on its way to the caller.

use std::net::IpAddr;
use std::time::Duration;

use actix_web::body::SizedStream;
use actix_web::http::header::{CACHE_CONTROL, CONTENT_TYPE, HeaderName, HeaderValue};
use actix_web::http::{Method, StatusCode};
use actix_web::{HttpResponse, HttpResponseBuilder};
use bytes::Bytes;
use futures_util::{Stream, stream};
use http_kit::Problem;
use reqwest::Response;
use tokio::time::timeout;

use super::exchange::{Answer, broken};
use super::request_body::Inlet;
use crate::departures::Departure;
use crate::gateway::{Gateway, overloaded};

/// The response headers that callers read. `content-length` is set anew with the body.
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

/// What an answer counts whose length its service does not say.
const UNKNOWN_LENGTH: u64 = 64 * 1024;

/// Streams an answer to the caller. Its place among the requests in flight ends here: from now on it costs the
/// service nothing but the memory that it is counted by.
///
/// # Errors
/// `502 bad-gateway` for an answer that no service of ours would give. For one that finds no room among those
/// that have not been taken yet, `503 overloaded`, or `502` when the request may have changed something.
pub(super) fn relay(
    answer: Answer,
    gateway: &Gateway,
    client: IpAddr,
    method: &Method,
) -> Result<HttpResponse, Problem> {
    let Answer {
        response,
        inlet,
        place,
    } = answer;
    drop(place);
    let status = StatusCode::from_u16(response.status().as_u16()).map_err(|_| broken())?;
    if status.is_informational() || (status.is_server_error() && !is_problem(&response)) {
        return Err(broken());
    }
    let mut builder = head(status, &response);
    let empty = matches!(status, StatusCode::NO_CONTENT | StatusCode::NOT_MODIFIED);
    let length = response.content_length();
    if empty || length == Some(0) {
        return Ok(builder.finish());
    }
    let bytes = length.unwrap_or(UNKNOWN_LENGTH);
    let Some(departure) = gateway.departures.admit(client, bytes) else {
        return Err(if method.is_safe() {
            overloaded()
        } else {
            broken()
        });
    };
    let body = Body {
        response,
        _departure: departure,
        _inlet: inlet,
        patience: gateway.upstream_timeout,
    };
    Ok(match length {
        Some(length) => builder.body(SizedStream::new(length, chunks(body))),
        None => builder.streaming(chunks(body)),
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
        // Answers are about somebody; no cache on the way shall keep them unless the service says so.
        builder.insert_header((CACHE_CONTROL, "no-store"));
    }
    builder
}

fn is_problem(response: &Response) -> bool {
    let kind = response.headers().get(CONTENT_TYPE.as_str());
    let kind = kind.and_then(|value| value.to_str().ok());
    kind.is_some_and(|kind| kind.starts_with("application/problem+json"))
}

struct Body {
    response: Response,
    _departure: Departure,
    _inlet: Option<Inlet>,
    patience: Duration,
}

#[derive(Debug, thiserror::Error)]
enum BodyError {
    #[error("the service's answer broke off")]
    BrokenOff(#[source] reqwest::Error),
    #[error("the service's answer stalled")]
    Stalled,
}

/// The parts of an answer. An error breaks the caller's connection off, so that the caller sees that the
/// answer is not complete.
fn chunks(body: Body) -> impl Stream<Item = Result<Bytes, BodyError>> {
    stream::unfold(Some(body), |body| async {
        let mut body = body?;
        match timeout(body.patience, body.response.chunk()).await {
            Ok(Ok(Some(bytes))) => Some((Ok(bytes), Some(body))),
            Ok(Ok(None)) => None,
            Ok(Err(error)) => Some((Err(BodyError::BrokenOff(error.without_url())), None)),
            Err(_) => Some((Err(BodyError::Stalled), None)),
        }
    })
}
