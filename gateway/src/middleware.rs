use std::time::Duration;

use actix_cors::{Cors, CorsError};
use actix_web::body::{BoxBody, EitherBody, MessageBody};
use actix_web::dev::{ServiceRequest, ServiceResponse};
use actix_web::http::StatusCode;
use actix_web::http::header::{HeaderValue, STRICT_TRANSPORT_SECURITY};
use actix_web::middleware::{Condition, Next};
use actix_web::web::Data;
use actix_web::{Error, ResponseError as _};
use http_kit::Problem;

use crate::client_info::{ClientInfo, scheme};
use crate::context::AppState;
use crate::forward::{forwarded_request_headers, forwarded_response_headers};
use crate::routes::RateClass;
use crate::settings::AllowedOrigins;

const METHODS: [&str; 5] = ["GET", "HEAD", "POST", "PUT", "DELETE"];

const MAX_AGE_SECONDS: usize = 600;

/// Middleware of what the gateway responds itself: counts a request towards the limit of most routes, which
/// [`forward`](crate::forward::forward) does for the routes of the services.
pub(crate) async fn count_request<B: MessageBody>(
    state: Data<AppState>,
    request: ServiceRequest,
    next: Next<B>,
) -> Result<ServiceResponse<EitherBody<B, BoxBody>>, Error> {
    let client = ClientInfo::of(request.request(), &state.settings.trusted_proxies);
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
        let scheme = scheme(request.request(), &state.settings.trusted_proxies);
        state.hsts.clone().filter(|_| scheme == "https")
    });
    let mut response = next.call(request).await?;
    if let Some(value) = value {
        let headers = response.headers_mut();
        headers.insert(STRICT_TRANSPORT_SECURITY, value);
    }
    Ok(response)
}

/// The request headers that the API reads. Browsers ask for those that they do not always allow, also for
/// `accept-language` if its value is unusual.
fn request_headers() -> impl Iterator<Item = &'static str> {
    forwarded_request_headers().chain(["traceparent", "x-request-id"])
}

/// Middleware for CORS: responds to preflight requests, and says on every response which pages of other origins may read it.
/// Without allowed origins it does nothing.
///
/// Tokens travel in a header, and the only cookie is for the pages of this server. So pages of other origins never get to use
/// credentials. `*` cannot be configured.
pub(crate) fn cors(origins: &AllowedOrigins) -> Condition<Cors> {
    let cors = Cors::default()
        .allowed_methods(METHODS)
        .allowed_headers(request_headers())
        .expose_headers(forwarded_response_headers().chain(["date", "x-request-id"]))
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
    let error = response.response().error();
    let error = error.and_then(|error| error.as_error::<CorsError>());
    Ok(match error.map(refused) {
        Some(problem) => {
            let explained = response.into_response(problem.error_response());
            explained.map_into_right_body()
        }
        None => response.map_into_left_body(),
    })
}

fn refused(error: &CorsError) -> Problem {
    let headers: Vec<_> = request_headers().collect();
    let (methods, headers) = (METHODS.join(", "), headers.join(", "));
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
