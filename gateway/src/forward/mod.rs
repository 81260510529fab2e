//! Forwards requests to the services, and their responses to the callers.

mod error;
mod exchange;
mod headers;
mod request_body;
mod response;

#[cfg(test)]
pub(crate) use self::headers::forwarded_request_headers;
#[cfg(test)]
pub(crate) use self::response::forwarded_response_headers;

use std::time::Duration;

use actix_web::web::{Data, Payload};
use actix_web::{FromRequest as _, HttpRequest, HttpResponse};
use auth::{Caller, MaybeCaller};
use fairness::Refused;
use http::Response;
use http_kit::Problem;
use telemetry::CallOutcome;
use tokio::time::timeout;
use values::Names as _;

use self::exchange::{UpstreamRequest, exchange};
use self::request_body::{Framing, RequestBody};
use crate::client_info::ClientInfo;
use crate::context::AppState;
use crate::limits::concurrency::{acquire, refusal};
use crate::limits::turns::Turn;
use crate::routes::{Access, Route, Work};
use crate::upstream::UpstreamClient;

/// How long a request may wait for others of its network.
const MAX_WAIT: Duration = Duration::from_secs(10);

/// Handles a request of a route: checks rate, token, path and size in this order, then asks the service.
///
/// # Errors
/// A problem of the gateway. Those of the service come as its response.
pub(crate) async fn forward(
    route: &'static Route,
    request: HttpRequest,
    payload: Payload,
    state: Data<AppState>,
    http_client: Data<UpstreamClient>,
) -> Result<HttpResponse, Problem> {
    let client = ClientInfo::of(&request, &state.trusted_proxies);
    let status = state.rate_limits.count(route.rate, client.address).await?;
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
    http_client: &UpstreamClient,
) -> Result<HttpResponse, Problem> {
    check_token(route.access, request).await?;
    headers::check_length(request.uri())?;
    let path = headers::path(route, request.match_info());
    let framing = Framing::of(request.headers())?;
    let body = request_body::collect(framing, payload, client.address, state).await?;
    let in_flight = state.concurrency.in_flight.of(route.service);
    let in_flight = acquire(in_flight, client.address, 1)?;
    let circuit = state.circuit_breakers.of(route.service);
    circuit.check()?;
    let turn = turn(route, body.as_ref(), client, state).await?;
    let circuit = circuit.acquire()?;

    let query = request.uri().query();
    let uri = state.upstreams.of(route.service).uri(&path, query);
    let upstream_request = UpstreamRequest {
        method: headers::method(&route.method)?,
        uri: uri.map_err(|error| error::malformed(&error))?,
        headers: || headers::request_headers(route.access, request.headers(), client),
        body: body
            .as_ref()
            .map(|body| body.bytes.clone())
            .unwrap_or_default(),
    };
    let exchange = exchange(http_client, upstream_request, state.upstream_timeout);
    let outcome =
        |result: &Result<_, _>| CallOutcome::of(result, |r: &Response<_>| r.status().as_u16());
    let response = telemetry::outgoing(route.service.name(), exchange, outcome).await;
    // From now on the request costs its service only the memory that `response_bytes` counts.
    drop((in_flight, turn, body));
    let response = match response {
        Ok(response) => {
            circuit.record_response();
            response
        }
        Err(problem) => {
            circuit.record_failure();
            return Err(problem);
        }
    };
    response::relay(response, state, client.address, route).await
}

/// Checks the token of a request as its route requires.
///
/// # Errors
/// `401` with the reason, or `503 not-ready` while no keys are known.
async fn check_token(access: Access, request: &HttpRequest) -> Result<(), Problem> {
    match access {
        Access::Public | Access::Cookie => Ok(()),
        Access::Token => Caller::extract(request).await.map(drop),
        Access::TokenOrSecret => MaybeCaller::extract(request).await.map(drop),
    }
}

/// Waits until the request may be sent, if the requests of its network have to take turns.
///
/// # Errors
/// `429 too-many-concurrent-requests` if earlier requests of the network take too long.
async fn turn(
    route: &Route,
    body: Option<&RequestBody>,
    client: &ClientInfo,
    state: &AppState,
) -> Result<Option<Turn>, Problem> {
    let work = route.work;
    let Some(work) = work.filter(|_| state.rate_limits.apply_to(client.address)) else {
        // Others must leave time for this request all the same.
        state.turns.record(client.address);
        return Ok(None);
    };
    let is_long = body.is_some_and(RequestBody::is_long);
    let work = if is_long { Work::Long } else { work };
    let turn = state.turns.wait(client.address, route.service, work);
    match timeout(MAX_WAIT, turn).await {
        Ok(Ok(turn)) => Ok(Some(turn)),
        Ok(Err(_)) | Err(_) => Err(refusal(Refused::ShareUsed)),
    }
}
