//! CORS: which pages of other origins may call the API from a browser.
//!
//! Tokens travel in a header, and the only cookie is for the pages of this server. So pages of other origins never get to use
//! credentials. `*` cannot be configured.

use actix_cors::{Cors, CorsError};
use actix_web::body::{BoxBody, EitherBody, MessageBody};
use actix_web::dev::{ServiceRequest, ServiceResponse};
use actix_web::http::StatusCode;
use actix_web::middleware::{Condition, Next};
use actix_web::{Error, ResponseError as _};
use http_kit::Problem;

use crate::settings::AllowedOrigins;

const METHODS: [&str; 5] = ["GET", "HEAD", "POST", "PUT", "DELETE"];

/// The request headers that the API reads. Browsers ask for those that they do not always allow, also for
/// `accept-language` if its value is unusual.
const REQUEST_HEADERS: [&str; 13] = [
    "accept",
    "accept-language",
    "authorization",
    "content-encoding",
    "content-type",
    "idempotency-key",
    "if-match",
    "if-none-match",
    "traceparent",
    "tracestate",
    "user-agent",
    "x-request-id",
    "x-task-secret",
];

/// The response headers that scripts may read, besides those that browsers always show.
const RESPONSE_HEADERS: [&str; 11] = [
    "allow",
    "content-disposition",
    "etag",
    "idempotent-replayed",
    "link",
    "location",
    "ratelimit",
    "ratelimit-policy",
    "retry-after",
    "www-authenticate",
    "x-request-id",
];

const MAX_AGE_SECONDS: usize = 600;

/// Middleware: responds to preflight requests, and says on every response whether the page may read it. Without
/// allowed origins it does nothing.
pub(crate) fn cors(origins: &AllowedOrigins) -> Condition<Cors> {
    let cors = Cors::default()
        .allowed_methods(METHODS)
        .allowed_headers(REQUEST_HEADERS)
        .expose_headers(RESPONSE_HEADERS)
        .max_age(MAX_AGE_SECONDS);
    let allow = |cors: Cors, origin: &String| cors.allowed_origin(origin);
    Condition::new(!origins.0.is_empty(), origins.0.iter().fold(cors, allow))
}

/// Middleware around [`cors`]: a refused preflight request is a problem that says what is allowed.
pub(crate) async fn explain_refusals<B: MessageBody>(
    request: ServiceRequest,
    next: Next<B>,
) -> Result<ServiceResponse<EitherBody<B, BoxBody>>, Error> {
    let response = next.call(request).await?;
    let refused = match response.response().error() {
        Some(error) => error.as_error::<CorsError>().map(refused),
        None => None,
    };
    Ok(match refused {
        Some(problem) => {
            let explained = response.into_response(problem.error_response());
            explained.map_into_right_body()
        }
        None => response.map_into_left_body(),
    })
}

fn refused(error: &CorsError) -> Problem {
    let (methods, headers) = (METHODS.join(", "), REQUEST_HEADERS.join(", "));
    let detail = match error {
        CorsError::MissingRequestMethod
        | CorsError::BadRequestMethod
        | CorsError::MethodNotAllowed => {
            format!("`Access-Control-Request-Method` must be one of: {methods}.")
        }
        CorsError::BadRequestHeaders | CorsError::HeadersNotAllowed => {
            format!("`Access-Control-Request-Headers` may only list: {headers}.")
        }
        _ => "Pages of this origin may not call this API. Its operator can allow the origin with \
            `CORS_ALLOWED_ORIGINS`."
            .to_owned(),
    };
    Problem::new(StatusCode::BAD_REQUEST, "cors-refused", detail)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::{REQUEST_HEADERS, RESPONSE_HEADERS};
    use crate::forward::{forwarded_request_headers, forwarded_response_headers};

    #[test]
    fn pages_may_send_what_services_read_and_what_the_gateway_reads_itself() {
        let forwarded = forwarded_request_headers();
        let read: BTreeSet<_> = forwarded.chain(["traceparent", "x-request-id"]).collect();
        assert_eq!(BTreeSet::from(REQUEST_HEADERS), read);
    }

    #[test]
    fn pages_may_read_what_services_and_the_gateway_send() {
        // Browsers show the first four anyway; the last two are for browsers alone.
        let others = [
            "cache-control",
            "content-language",
            "content-type",
            "last-modified",
            "content-security-policy",
            "vary",
        ];
        let forwarded = forwarded_response_headers().filter(|name| !others.contains(name));
        let sent: BTreeSet<_> = forwarded.chain(["x-request-id"]).collect();
        assert_eq!(BTreeSet::from(RESPONSE_HEADERS), sent);
    }
}
