use std::time::Duration;

use actix_web::body::MessageBody;
use actix_web::dev::{ServiceRequest, ServiceResponse};
use actix_web::http::header::{HeaderValue, STRICT_TRANSPORT_SECURITY};
use actix_web::middleware::Next;
use actix_web::web::Data;

use crate::client_info;
use crate::context::AppState;

/// The value of `Strict-Transport-Security`; `None` for a duration of zero.
pub(crate) fn header_value(max_age: Duration) -> Option<HeaderValue> {
    let seconds = max_age.as_secs();
    let value = HeaderValue::from_str(&format!("max-age={seconds}")).ok();
    value.filter(|_| seconds > 0)
}

/// Middleware: sends HSTS on responses over TLS. Browsers ignore it on plain HTTP (RFC 6797 section 7.2).
///
/// # Errors
/// The error of an inner middleware.
pub(crate) async fn send_hsts<B: MessageBody>(
    request: ServiceRequest,
    next: Next<B>,
) -> Result<ServiceResponse<B>, actix_web::Error> {
    let value = request.app_data::<Data<AppState>>().and_then(|state| {
        let scheme = client_info::scheme(request.request(), &state.trusted_proxies);
        state.hsts.clone().filter(|_| scheme == "https")
    });
    let mut response = next.call(request).await?;
    if let Some(value) = value {
        let headers = response.headers_mut();
        headers.insert(STRICT_TRANSPORT_SECURITY, value);
    }
    Ok(response)
}
