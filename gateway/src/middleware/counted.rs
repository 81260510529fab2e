use actix_web::Error;
use actix_web::body::{BoxBody, EitherBody, MessageBody};
use actix_web::dev::{ServiceRequest, ServiceResponse};
use actix_web::middleware::Next;
use actix_web::web::Data;

use crate::client_info::ClientInfo;
use crate::context::AppState;
use crate::routes::RateClass;

/// Middleware of what the gateway responds itself: counts a request towards the limit of most routes, which
/// [`forward`](crate::forward::forward) does for the routes of the services.
///
/// # Errors
/// The error of an inner middleware.
pub(crate) async fn count_request<B: MessageBody>(
    request: ServiceRequest,
    next: Next<B>,
) -> Result<ServiceResponse<EitherBody<B, BoxBody>>, Error> {
    let status = match request.app_data::<Data<AppState>>() {
        Some(state) => {
            let client = ClientInfo::of(request.request(), &state.trusted_proxies);
            let count = state.rate_limits.count(RateClass::Normal, client.address);
            count.await
        }
        None => Ok(None),
    };
    let status = match status {
        Ok(status) => status,
        Err(problem) => return Ok(request.error_response(problem).map_into_right_body()),
    };
    let mut response = next.call(request).await?;
    if let Some(status) = status {
        status.write_headers(response.headers_mut());
    }
    Ok(response.map_into_left_body())
}
