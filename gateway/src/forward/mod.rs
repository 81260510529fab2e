//! A request's way to its service and its answer's way back.

mod access;
mod exchange;
mod head;
mod request_body;
mod response;

use actix_web::web::{Data, Payload};
use actix_web::{HttpRequest, HttpResponse};
use reqwest::Client;
use web::Problem;

use crate::gateway::Gateway;
use crate::origin::Origin;
use crate::table::Route;
use request_body::Framing;

/// Answers a request of a route: rate, token, path and size are checked in this order, then the service
/// is asked.
///
/// # Errors
/// A problem of the gateway's own; those of the service come as its response.
pub(crate) async fn forward(
    route: &'static Route,
    request: HttpRequest,
    payload: Payload,
    gateway: Data<Gateway>,
    client: Data<Client>,
) -> Result<HttpResponse, Problem> {
    let origin = Origin::of(&request, &gateway.trusted_proxies);
    gateway.rate_limits.count(route.rate, origin.client)?;
    access::check(route.access, &request).await?;
    let path = head::path(route, request.match_info())?;
    let framing = Framing::of(request.headers())?;
    let permit = gateway.enter()?;

    let query = request.uri().query();
    let url = gateway.upstreams.url(route.service, &path, query);
    let outgoing = exchange::Outgoing {
        method: head::method(&route.method)?,
        url,
        headers: head::request_headers(request.headers(), &origin),
        framing,
    };
    let answer = exchange::exchange(&gateway, &client, outgoing, payload).await?;
    response::relay(answer, permit, gateway.upstream_timeout)
}
