use std::borrow::Cow;
use std::sync::LazyLock;
use std::time::{Duration, Instant, SystemTime};

use actix_web::body::MessageBody;
use actix_web::dev::{ServiceRequest, ServiceResponse};
use actix_web::error::InternalError;
use actix_web::http::header::{HeaderMap, HeaderName, HeaderValue};
use actix_web::http::{Method, StatusCode};
use actix_web::middleware::Next;
use actix_web::{HttpMessage as _, HttpRequest};
use telemetry::{RequestContext, SpanKind};

use crate::Problem;

/// The header with the request id.
pub const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");
/// The header of W3C Trace Context.
pub const TRACEPARENT: HeaderName = HeaderName::from_static("traceparent");

/// How long a request waited for its caller.
struct Waited(Duration);

/// Records that a request waited for its caller, which is not part of the time that the request has taken.
pub fn waited_for_caller(request: &HttpRequest, time: Duration) {
    let mut extensions = request.extensions_mut();
    let before = extensions
        .remove()
        .map_or(Duration::ZERO, |Waited(time)| time);
    extensions.insert(Waited(before + time));
}

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
        let waited = result.as_ref().ok().and_then(|response| {
            let extensions = response.request().extensions();
            extensions.get().map(|Waited(time)| *time)
        });
        let route = route.map_or(Cow::Borrowed(OTHER), Cow::Owned);
        record(method, route, status, started + waited.unwrap_or_default());
        result
    };
    context.scope(SpanKind::Server, "request", work).await
}

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
const OTHER: &str = "other";

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

fn record(method: &'static str, route: Cow<'static, str>, status: StatusCode, started: Instant) {
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

/// The bytes of the response to a request that could not be read: a problem, after which the connection is closed.
/// It is logged and measured like the responses of the application.
///
/// `None` for a status that does not mean this.
pub fn unreadable_request(status: StatusCode) -> Option<Vec<u8>> {
    let (code, detail) = match status {
        StatusCode::BAD_REQUEST => (
            "malformed-request",
            "The request is not HTTP/1.1. Check its first line, its headers and the length of its body.",
        ),
        StatusCode::REQUEST_TIMEOUT => (
            "request-timeout",
            "The head of the request took too long to arrive. Send it again.",
        ),
        StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE => (
            "head-too-large",
            "The head of the request must have less than 128 KiB (131072 bytes) and at most 96 headers.",
        ),
        _ => return None,
    };
    let problem = Problem::new(status, code, detail);
    let context = RequestContext::fresh();
    context.run(SpanKind::Server, "request", || {
        record(OTHER, Cow::Borrowed(OTHER), status, Instant::now());
        response(&problem, status)
    })
}

fn response(problem: &Problem, status: StatusCode) -> Option<Vec<u8>> {
    let body = problem.body();
    let (request_id, date) = (&body.request_id, httpdate::fmt_http_date(SystemTime::now()));
    let json = serde_json::to_vec(&body).ok()?;
    let length = json.len();
    let mut response = format!(
        "HTTP/1.1 {status}\r\n\
        content-length: {length}\r\n\
        content-type: application/problem+json\r\n\
        connection: close\r\n\
        cache-control: no-store\r\n\
        x-content-type-options: nosniff\r\n\
        x-request-id: {request_id}\r\n\
        date: {date}\r\n\r\n"
    )
    .into_bytes();
    response.extend(json);
    Some(response)
}

#[cfg(test)]
mod tests {
    use actix_web::http::{Method, StatusCode};
    use serde_json::Value;

    use super::{method_label, status_label, unreadable_request};

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

    #[test]
    fn the_response_is_a_problem_with_a_request_id() {
        for (status, line, code) in [
            (400, "HTTP/1.1 400 Bad Request\r\n", "malformed-request"),
            (408, "HTTP/1.1 408 Request Timeout\r\n", "request-timeout"),
            (
                431,
                "HTTP/1.1 431 Request Header Fields Too Large\r\n",
                "head-too-large",
            ),
        ] {
            let response = unreadable_request(StatusCode::from_u16(status).unwrap());
            let response = String::from_utf8(response.unwrap()).unwrap();
            assert!(response.starts_with(line), "{response}");
            let (head, body) = response.split_once("\r\n\r\n").unwrap();
            assert!(head.contains(&format!("content-length: {}\r\n", body.len())));
            let body: Value = serde_json::from_str(body).unwrap();
            assert_eq!(body["code"], code);
            let request_id = body["requestId"].as_str().unwrap();
            assert_eq!(request_id.len(), 16);
            assert!(head.contains(&format!("x-request-id: {request_id}\r\n")));
        }
        assert_eq!(unreadable_request(StatusCode::NOT_FOUND), None);
    }
}
