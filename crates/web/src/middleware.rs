use std::time::Instant;

use actix_web::body::MessageBody;
use actix_web::dev::{ServiceRequest, ServiceResponse};
use actix_web::http::header::{HeaderMap, HeaderName, HeaderValue};
use actix_web::middleware::Next;
use telemetry::RequestContext;

/// The header that names a request from end to end.
pub const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");
/// The header of W3C Trace Context.
pub const TRACEPARENT: HeaderName = HeaderName::from_static("traceparent");

/// Middleware, outermost: gives a request its [`RequestContext`], answers with `X-Request-Id`, and writes
/// one log line and one measurement for it. Neither holds the path or the query, which may carry
/// secrets: they name the route's pattern.
///
/// # Errors
/// None: an error of an inner middleware becomes its response here.
pub async fn request_context<B: MessageBody + 'static>(
    request: ServiceRequest,
    next: Next<B>,
) -> Result<ServiceResponse<impl MessageBody>, actix_web::Error> {
    let context = RequestContext::continued(
        text(request.headers(), &REQUEST_ID),
        text(request.headers(), &TRACEPARENT),
    );
    let request_id = HeaderValue::try_from(context.request_id.as_str());
    let plain = request.request().clone();
    let work = async move {
        let started = Instant::now();
        let method = request.method().clone();
        let mut response = match next.call(request).await {
            Ok(response) => response.map_into_left_body(),
            Err(error) => ServiceResponse::new(plain, error.error_response()).map_into_right_body(),
        };
        if let Ok(request_id) = request_id {
            response.headers_mut().insert(REQUEST_ID, request_id);
        }
        let route = response.request().match_pattern();
        let route = route.as_deref().unwrap_or("unmatched");
        record(method.as_str(), route, response.status().as_u16(), started);
        Ok(response)
    };
    context.scope("request", work).await
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
            "answered"
        );
    } else {
        tracing::info!(
            method,
            route,
            status,
            duration_ms = elapsed.as_millis(),
            "answered"
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
