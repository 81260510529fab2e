//! Forwards requests to the services, and their responses to the callers.

mod access;
mod error;
mod exchange;
mod headers;
mod request_body;
mod response;

use actix_web::web::{Data, Payload};
use actix_web::{HttpRequest, HttpResponse};
use http_kit::Problem;
use reqwest::Client;

use self::error::ForwardError;
use self::exchange::{UpstreamRequest, exchange};
use self::request_body::Framing;
use crate::client_info::ClientInfo;
use crate::context::AppState;
use crate::limits::concurrency::acquire;
use crate::routes::Route;

/// Handles a request of a route: checks rate, token, path and size in this order, then asks the service.
///
/// # Errors
/// A problem of the gateway. Those of the service come as its response.
pub(crate) async fn forward(
    route: &'static Route,
    request: HttpRequest,
    payload: Payload,
    state: Data<AppState>,
    http_client: Data<Client>,
) -> Result<HttpResponse, Problem> {
    let client = ClientInfo::of(&request, &state.trusted_proxies);
    let status = state.rate_limits.count(route.rate, client.address)?;
    let response = forward_counted(route, &request, payload, &client, &state, &http_client).await;
    let Some(status) = status else {
        return response;
    };
    match response {
        Ok(mut response) => {
            status.write_headers(response.headers_mut());
            Ok(response)
        }
        Err(problem) => Err(status.apply_to(problem)),
    }
}

async fn forward_counted(
    route: &'static Route,
    request: &HttpRequest,
    payload: Payload,
    client: &ClientInfo,
    state: &AppState,
    http_client: &Client,
) -> Result<HttpResponse, Problem> {
    access::check(route.access, request).await?;
    headers::check_length(request.uri())?;
    let path = headers::path(route, request.match_info());
    let framing = Framing::of(request.headers())?;
    let body = request_body::collect(framing, payload, client.address, state).await?;
    let circuit = state.circuit_breakers.of(route.service).acquire()?;
    let in_flight = state.concurrency.in_flight(route.service);
    let in_flight = acquire(in_flight, client.address, 1)?;

    let query = request.uri().query();
    let upstream_request = UpstreamRequest {
        method: headers::method(&route.method)?,
        url: state.upstreams.url(route.service, &path, query),
        headers: headers::request_headers(request.headers(), client),
        body,
    };
    let response = exchange(http_client, upstream_request, state.upstream_timeout).await;
    // From now on the request costs its service only the memory that `response_bytes` counts.
    drop(in_flight);
    let response = match response {
        Ok(response) => {
            circuit.record_response();
            response
        }
        Err(ForwardError::Service(problem)) => {
            circuit.record_failure();
            return Err(problem);
        }
        Err(ForwardError::Caller(problem)) => return Err(problem),
    };
    response::relay(response, state, client.address, &route.method)
}
