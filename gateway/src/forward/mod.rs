//! A request's way to its service and its answer's way back.

mod access;
mod exchange;
mod head;
mod request_body;
mod response;

use actix_web::web::{Data, Payload};
use actix_web::{HttpRequest, HttpResponse};
use http_kit::Problem;
use reqwest::Client;

use crate::gateway::Gateway;
use crate::origin::Origin;
use crate::table::Route;
use exchange::{Failure, Outgoing, exchange};
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
    let standing = gateway.rate_limits.count(route.rate, origin.client)?;
    let answer = answer(route, &request, payload, &origin, &gateway, &client).await;
    let Some(standing) = standing else {
        return answer;
    };
    match answer {
        Ok(mut response) => {
            standing.tell(response.headers_mut());
            Ok(response)
        }
        Err(problem) => Err(standing.tell_with(problem)),
    }
}

async fn answer(
    route: &'static Route,
    request: &HttpRequest,
    payload: Payload,
    origin: &Origin,
    gateway: &Gateway,
    client: &Client,
) -> Result<HttpResponse, Problem> {
    access::check(route.access, request).await?;
    head::check_length(request.uri())?;
    let path = head::path(route, request.match_info());
    let framing = Framing::of(request.headers())?;
    let admission = gateway.circuits.of(route.service).admit()?;

    let query = request.uri().query();
    let url = gateway.upstreams.url(route.service, &path, query);
    let outgoing = Outgoing {
        method: head::method(&route.method)?,
        url,
        headers: head::request_headers(request.headers(), origin),
        framing,
    };
    let answer = match exchange(gateway, client, outgoing, payload).await {
        Ok(answer) => {
            admission.answered();
            answer
        }
        Err(Failure::Service(problem)) => {
            admission.failed();
            return Err(problem);
        }
        Err(Failure::Caller(problem)) => return Err(problem),
    };
    response::relay(answer, gateway, origin.client, &route.method)
}
