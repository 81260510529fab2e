use actix_web::http::header::LINK;
use actix_web::web::{Data, Json};
use actix_web::{HttpRequest, HttpResponse, get, post};
use auth::{AdminCaller, AdminProblems};
use database::{Connection, DatabaseProblems};
use http_kit::{BodyProblems, Problem, Query, QueryProblems};
use listing::next_link;

use crate::context::Context;
use crate::deliveries::hosts::store::HostRow;
use crate::deliveries::hosts::{list, set_paused};
use crate::deliveries::requests::{HostQuery, HostRequest};
use crate::deliveries::routes::HostInput;
use crate::error::TooManyPausedHosts;

/// The hosts with deliveries that are pending or have failed, and those that are paused, in alphabetical order. For
/// administrators.
#[utoipa::path(
    params(HostQuery),
    responses(
        (status = 200, description = "One page of hosts.", body = [HostRow],
            headers(("Link" = String, description = "`<…>; rel=\"next\"` if there is a next page."))),
        QueryProblems, AdminProblems, DatabaseProblems,
    ),
)]
#[get("/people-task/deliveries/hosts")]
pub(crate) async fn list_delivery_hosts(
    admin: AdminCaller,
    query: Query,
    request: HttpRequest,
    context: Data<Context>,
) -> Result<HttpResponse, Problem> {
    let query = HostQuery::parse(&query)?;
    let load = move |connection: &mut Connection| list(connection, &query);
    let (hosts, has_more) = context.lists.query(Some(admin.id()), load).await?;
    let mut response = HttpResponse::Ok();
    if let Some(last) = hosts.last().filter(|_| has_more)
        && let Some(link) = next_link(
            request.path(),
            request.query_string(),
            ("after", &last.host),
        )
    {
        response.insert_header((LINK, link));
    }
    Ok(response.json(hosts))
}

/// Pauses the deliveries to a host. They wait until it is resumed, and no attempts are counted. Requests that are under
/// way end; workers start no others within a second. For administrators.
#[utoipa::path(
    request_body = HostRequest,
    responses(
        (status = 200, description = "The host.", body = HostRow),
        BodyProblems, AdminProblems, TooManyPausedHosts, DatabaseProblems,
    ),
)]
#[post("/people-task/deliveries/pause")]
pub(crate) async fn pause_deliveries(
    (admin, meta, body, context): HostInput,
) -> Result<Json<HostRow>, Problem> {
    let host = HostRequest::parse(body.0)?.host;
    let paused = set_paused(&context.database, &admin, host, meta, true);
    Ok(Json(paused.await?))
}

/// Sends the deliveries to a paused host again. For administrators.
#[utoipa::path(
    request_body = HostRequest,
    responses(
        (status = 200, description = "The host.", body = HostRow),
        BodyProblems, AdminProblems, DatabaseProblems,
    ),
)]
#[post("/people-task/deliveries/resume")]
pub(crate) async fn resume_deliveries(
    (admin, meta, body, context): HostInput,
) -> Result<Json<HostRow>, Problem> {
    let host = HostRequest::parse(body.0)?.host;
    let resumed = set_paused(&context.database, &admin, host, meta, false);
    Ok(Json(resumed.await?))
}
