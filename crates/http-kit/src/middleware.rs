use std::borrow::Cow;
use std::sync::LazyLock;
use std::time::{Duration, Instant};

use actix_web::body::MessageBody;
use actix_web::dev::{ServiceRequest, ServiceResponse};
use actix_web::error::InternalError;
use actix_web::http::header::{HeaderMap, HeaderName, HeaderValue};
use actix_web::http::{Method, StatusCode};
use actix_web::middleware::Next;
use actix_web::{HttpMessage as _, HttpRequest};
use telemetry::{RequestContext, SpanKind};

/// The header with the request id.
pub const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");
/// The header of W3C Trace Context.
pub const TRACEPARENT: HeaderName = HeaderName::from_static("traceparent");

/// How long a request waited because its caller wanted it to. It is not part of the time that the request has taken.
#[derive(Debug, Clone, Copy)]
pub struct Waited(pub Duration);

/// The outermost middleware: runs a request in its [`RequestContext`], sets `X-Request-Id` on the response, and
/// records one log line and one measurement. Both have the route's pattern instead of the path and the query,
/// which may contain secrets, and nothing else that a caller can invent.
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
        let method = method_label(request.method());
        // actix requires that no clone of the request is held while it is routed.
        let mut result = next.call(request).await;
        if let Ok(request_id) = request_id {
            result = set_request_id(result, request_id);
        }
        let (route, status) = match &result {
            Ok(response) => (response.request().match_pattern(), response.status()),
            Err(error) => (None, error.as_response_error().status_code()),
        };
        let response = result.as_ref().ok();
        let waited = response.and_then(|response| waited(response.request()));
        let route = route.map_or(Cow::Borrowed(OTHER), Cow::Owned);
        record(method, route, status, started + waited.unwrap_or_default());
        result
    };
    context.scope(SpanKind::Server, "request", work).await
}

fn waited(request: &HttpRequest) -> Option<Duration> {
    let extensions = request.extensions();
    extensions.get().map(|Waited(time)| *time)
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

/// The label of everything that only the caller has a name for: each new label is a series that is kept for ever.
pub(crate) const OTHER: &str = "other";

/// The label of a method: its name if it is a standard one, because callers can invent any number of others.
fn method_label(method: &Method) -> &'static str {
    const STANDARD: [&str; 9] = [
        "GET", "HEAD", "POST", "PUT", "DELETE", "PATCH", "OPTIONS", "CONNECT", "TRACE",
    ];
    let known = STANDARD.into_iter().find(|name| method == name);
    known.unwrap_or(OTHER)
}

/// The label of a status, which is not allocated for each request.
fn status_label(status: StatusCode) -> &'static str {
    static LABELS: LazyLock<Vec<String>> =
        LazyLock::new(|| (100..600).map(|status| status.to_string()).collect());
    let index = usize::from(status.as_u16()).wrapping_sub(100);
    LABELS.get(index).map_or(OTHER, String::as_str)
}

/// Logs, measures and traces a response.
pub(crate) fn record(
    method: &'static str,
    route: Cow<'static, str>,
    status: StatusCode,
    started: Instant,
) {
    let elapsed = started.elapsed();
    let duration_ms = u64::try_from(elapsed.as_millis()).unwrap_or(u64::MAX);
    let (code, shown) = (status.as_u16(), route.as_ref());
    telemetry::describe_request(method, shown, code);
    if status.is_server_error() {
        tracing::warn!(
            method,
            route = shown,
            status = code,
            duration_ms,
            "request completed"
        );
    } else {
        tracing::info!(
            method,
            route = shown,
            status = code,
            duration_ms,
            "request completed"
        );
    }
    metrics::histogram!(
        "http_request_duration_seconds",
        "method" => method,
        "route" => route,
        "status" => status_label(status),
    )
    .record(elapsed.as_secs_f64());
}

#[cfg(test)]
mod tests {
    use actix_web::http::{Method, StatusCode};

    use super::{method_label, status_label};

    #[test]
    fn only_standard_methods_are_named() {
        assert_eq!(method_label(&Method::DELETE), "DELETE");
        for invented in ["get", "PROPFIND", "X-1"] {
            assert_eq!(method_label(&invented.parse().unwrap()), "other");
        }
    }

    #[test]
    fn statuses_are_labelled_with_their_number() {
        assert_eq!(status_label(StatusCode::CONTINUE), "100");
        assert_eq!(status_label(StatusCode::NOT_FOUND), "404");
        assert_eq!(status_label(StatusCode::from_u16(599).unwrap()), "599");
        assert_eq!(status_label(StatusCode::from_u16(999).unwrap()), "other");
    }
}
