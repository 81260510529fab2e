use std::borrow::Cow;
use std::time::{Instant, SystemTime};

use actix_web::http::StatusCode;
use telemetry::{RequestContext, SpanKind};

use crate::Problem;
use crate::middleware::{OTHER, record};

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
    use actix_web::http::StatusCode;
    use serde_json::Value;

    use super::unreadable_request;

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
            assert_eq!(request_id.len(), 32);
            assert!(head.contains(&format!("x-request-id: {request_id}\r\n")));
        }
        assert_eq!(unreadable_request(StatusCode::NOT_FOUND), None);
    }
}
