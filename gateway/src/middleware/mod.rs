//! Middleware for every response: CORS, HSTS and the rule for `HEAD`; and the rate limit of the gateway's own paths.

pub(crate) mod cors;

use std::time::Duration;

use actix_web::Error;
use actix_web::body::{BodySize, BodyStream, BoxBody, EitherBody, MessageBody};
use actix_web::dev::{ServiceRequest, ServiceResponse};
use actix_web::http::Method;
use actix_web::http::header::{CONTENT_LENGTH, HeaderValue, STRICT_TRANSPORT_SECURITY};
use actix_web::middleware::Next;
use actix_web::web::Data;
use bytes::Bytes;
use futures_util::stream::{Empty, empty};

use crate::client_info::{ClientInfo, scheme};
use crate::context::AppState;
use crate::routes::RateClass;

/// Middleware of what the gateway responds itself: counts a request towards the limit of most routes, which
/// [`forward`](crate::forward::forward) does for the routes of the services.
pub(crate) async fn count_request<B: MessageBody>(
    state: Data<AppState>,
    request: ServiceRequest,
    next: Next<B>,
) -> Result<ServiceResponse<EitherBody<B, BoxBody>>, Error> {
    let client = ClientInfo::of(request.request(), &state.trusted_proxies);
    let limits = &state.rate_limits;
    let status = match limits.count(RateClass::Normal, client.address, None).await {
        Ok(status) => status,
        Err(problem) => return Ok(request.error_response(problem).map_into_right_body()),
    };
    let mut response = next.call(request).await?;
    if let Some(status) = status {
        status.write_headers(response.headers_mut());
    }
    Ok(response.map_into_left_body())
}

/// An empty body of which actix-web does not derive the length.
type NoBody = BodyStream<Empty<Result<Bytes, std::io::Error>>>;

/// Middleware: removes the body of the response to a `HEAD` and keeps its length (RFC 9110 section 9.3.2).
///
/// actix-web does so too, but it looks at the last request that it has read: with a pipelined request behind
/// the `HEAD`, it would send the body.
pub(crate) async fn remove_body<B: MessageBody>(
    request: ServiceRequest,
    next: Next<B>,
) -> Result<ServiceResponse<EitherBody<B, NoBody>>, Error> {
    let is_head = request.method() == Method::HEAD;
    let mut response = next.call(request).await?;
    let size = response.response().body().size();
    if !is_head || size == BodySize::None {
        return Ok(response.map_into_left_body());
    }
    if let BodySize::Sized(length) = size {
        let length = HeaderValue::from(length);
        response.headers_mut().insert(CONTENT_LENGTH, length);
    }
    response.response_mut().head_mut().no_chunking(true);
    Ok(response.map_body(|_, _| EitherBody::right(BodyStream::new(empty()))))
}

/// The value of `Strict-Transport-Security`; `None` for a duration of zero.
pub(crate) fn hsts_value(max_age: Duration) -> Option<HeaderValue> {
    let seconds = max_age.as_secs();
    let value = HeaderValue::from_str(&format!("max-age={seconds}")).ok();
    value.filter(|_| seconds > 0)
}

/// Middleware: sends HSTS on responses over TLS. Browsers ignore it on plain HTTP (RFC 6797 section 7.2).
pub(crate) async fn send_hsts<B: MessageBody>(
    request: ServiceRequest,
    next: Next<B>,
) -> Result<ServiceResponse<B>, Error> {
    let value = request.app_data::<Data<AppState>>().and_then(|state| {
        let scheme = scheme(request.request(), &state.trusted_proxies);
        state.hsts.clone().filter(|_| scheme == "https")
    });
    let mut response = next.call(request).await?;
    if let Some(value) = value {
        let headers = response.headers_mut();
        headers.insert(STRICT_TRANSPORT_SECURITY, value);
    }
    Ok(response)
}
