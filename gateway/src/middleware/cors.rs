//! CORS: which pages of other origins may call the API from a browser.
//!
//! Tokens travel in a header and the gateway reads no cookies, so it never allows credentials. `*` cannot be
//! configured.

use actix_cors::Cors;

use crate::settings::AllowedOrigins;

/// The request headers that the API reads and that need a browser's permission.
const REQUEST_HEADERS: [&str; 7] = [
    "authorization",
    "content-type",
    "if-match",
    "if-none-match",
    "traceparent",
    "x-request-id",
    "x-task-secret",
];

/// The response headers that scripts may read.
const RESPONSE_HEADERS: [&str; 8] = [
    "etag",
    "link",
    "location",
    "ratelimit",
    "ratelimit-policy",
    "retry-after",
    "www-authenticate",
    "x-request-id",
];

const MAX_AGE_SECONDS: usize = 600;

/// Middleware: responds to preflight requests, and says on every response whether the page may read it.
pub(crate) fn cors(origins: &AllowedOrigins) -> Cors {
    let cors = Cors::default()
        .allowed_methods(["GET", "HEAD", "POST", "PUT", "DELETE"])
        .allowed_headers(REQUEST_HEADERS)
        .expose_headers(RESPONSE_HEADERS)
        .max_age(MAX_AGE_SECONDS);
    let origins = origins.0.iter();
    origins.fold(cors, |cors, origin| cors.allowed_origin(origin))
}
