use std::convert::Infallible;

use actix_web::web::{Bytes, Data};
use actix_web::{HttpResponse, get};
use futures_util::StreamExt as _;
use http_kit::{Problem, Query};

use super::store::Line;
use super::{EndedTasks, Listener};

/// The tasks that end from now on, or since the cursor of an earlier response, as lines of JSON. Internal: the gateway
/// does not route it and the OpenAPI document does not contain it.
#[get("/internal/tasks/ended")]
pub(crate) async fn list_ended_tasks(
    query: Query,
    feed: Data<EndedTasks>,
) -> Result<HttpResponse, Problem> {
    let since = query.first("cursor").map(str::parse).transpose();
    let since = since.map_err(|_| Problem::not_found("cursor"))?;
    let listener = Listener::new(feed.into_inner(), since);
    let too_many = || Problem::unavailable("overloaded", "Too many gateways listen.");
    let lines = listener.ok_or_else(too_many)?.lines();
    let lines = lines.map(|line| Ok::<_, Infallible>(encode(&line)));
    Ok(HttpResponse::Ok()
        .content_type("application/x-ndjson")
        .streaming(lines))
}

fn encode(line: &Line) -> Bytes {
    let mut json = serde_json::to_vec(line).unwrap_or_default();
    json.push(b'\n');
    json.into()
}
