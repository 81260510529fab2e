use std::time::Instant;

use actix_web::body::MessageBody;
use actix_web::dev::{ServiceRequest, ServiceResponse};
use actix_web::error::InternalError;
use actix_web::http::header::{HeaderMap, HeaderName, HeaderValue};
use actix_web::middleware::Next;
use telemetry::RequestContext;

/// The header with the request id.
pub const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");
/// The header of W3C Trace Context.
pub const TRACEPARENT: HeaderName = HeaderName::from_static("traceparent");

/// The outermost middleware: runs a request in its [`RequestContext`], sets `X-Request-Id` on the response, and
/// records one log line and one measurement. Both have the route's pattern instead of the path and the query,
/// which may contain secrets.
///
/// # Errors
/// The error of an inner middleware, with `X-Request-Id` on its response.
pub async fn request_context<B: MessageBody + 'static>(
    request: ServiceRequest,
    next: Next<B>,
) -> Result<ServiceResponse<impl MessageBody>, actix_web::Error> {
    let context = RequestContext::continued(
        text(request.headers(), &REQUEST_ID),
        text(request.headers(), &TRACEPARENT),
    );
    let request_id = HeaderValue::try_from(context.request_id.as_str());
    let work = async move {
        let started = Instant::now();
        let method = request.method().clone();
        // actix requires that no clone of the request is held while it is routed.
        let mut result = next.call(request).await;
        if let Ok(request_id) = request_id {
            result = set_request_id(result, request_id);
        }
        let (route, status) = match &result {
            Ok(response) => (response.request().match_pattern(), response.status()),
            Err(error) => (None, error.as_response_error().status_code()),
        };
        let route = route.as_deref().unwrap_or("unmatched");
        record(method.as_str(), route, status.as_u16(), started);
        result
    };
    context.scope("request", work).await
}

/// Sets the header on the response, or on the response of the error.
fn set_request_id<B>(
    result: Result<ServiceResponse<B>, actix_web::Error>,
    request_id: HeaderValue,
) -> Result<ServiceResponse<B>, actix_web::Error> {
    match result {
        Ok(mut response) => {
            response.headers_mut().insert(REQUEST_ID, request_id);
            Ok(response)
        }
        Err(error) => {
            let mut response = error.error_response();
            response.headers_mut().insert(REQUEST_ID, request_id);
            Err(InternalError::from_response(error, response).into())
        }
    }
}

fn text<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Option<&'a str> {
    headers.get(name).and_then(|value| value.to_str().ok())
}

fn record(method: &str, route: &str, status: u16, started: Instant) {
    let elapsed = started.elapsed();
    if status >= 500 {
        tracing::warn!(
            method,
            route,
            status,
            duration_ms = elapsed.as_millis(),
            "request completed"
        );
    } else {
        tracing::info!(
            method,
            route,
            status,
            duration_ms = elapsed.as_millis(),
            "request completed"
        );
    }
    metrics::histogram!(
        "http_request_duration_seconds",
        "method" => method.to_owned(),
        "route" => route.to_owned(),
        "status" => status.to_string(),
    )
    .record(elapsed.as_secs_f64());
}
