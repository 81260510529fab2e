use std::time::Duration;

use actix_web::body::MessageBody;
use actix_web::dev::{ServiceRequest, ServiceResponse};
use actix_web::http::header::{HeaderValue, STRICT_TRANSPORT_SECURITY};
use actix_web::middleware::Next;
use actix_web::web::Data;

use crate::gateway::Gateway;
use crate::origin;

/// The value of `Strict-Transport-Security`; `None` for a time of zero, which sends none.
pub(crate) fn policy(max_age: Duration) -> Option<HeaderValue> {
    let seconds = max_age.as_secs();
    let value = HeaderValue::from_str(&format!("max-age={seconds}")).ok();
    value.filter(|_| seconds > 0)
}

/// Middleware: tells browsers that came by TLS to come by TLS from now on. On plain HTTP the header would
/// have no meaning (RFC 6797 section 7.2).
///
/// # Errors
/// The error of an inner middleware.
pub(crate) async fn tell<B: MessageBody>(
    request: ServiceRequest,
    next: Next<B>,
) -> Result<ServiceResponse<B>, actix_web::Error> {
    let policy = request.app_data::<Data<Gateway>>().and_then(|gateway| {
        let scheme = origin::scheme(request.request(), &gateway.trusted_proxies);
        let policy = gateway.transport_policy.as_ref();
        policy.filter(|_| scheme == "https").cloned()
    });
    let mut response = next.call(request).await?;
    if let Some(policy) = policy {
        response
            .headers_mut()
            .insert(STRICT_TRANSPORT_SECURITY, policy);
    }
    Ok(response)
}
