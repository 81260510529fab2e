use actix_web::web::{Data, Json, Path};
use actix_web::{HttpRequest, HttpResponse, get, post};
use audit_log::RequestMeta;
use auth::TokenProblems;
use http_kit::{Problem, Query, QueryProblems, path_id};
use listing::Paging;
use service_http::DatabaseProblems;

use crate::context::Context;
use crate::deliveries::error::NoDelivery;
use crate::deliveries::responses::DeliveryResponse;
use crate::deliveries::{list, redeliver};
use crate::tasks::credentials::AuthenticatedUser;
use crate::tasks::error::{Forbidden, NoTask};

/// The deliveries of a task's decision, one for each webhook, and of due dates that have passed. For the task's creator and administrators.
#[utoipa::path(
    tag = "people-task",
    operation_id = "listTaskDeliveries",
    params(("id" = String, Path, description = "The task's id."), Paging),
    security(("bearer" = [])),
    responses(
        (status = 200, description = "One page of deliveries. `Link` leads to the next one.", body = [DeliveryResponse]),
        QueryProblems, TokenProblems, Forbidden, NoTask, DatabaseProblems,
    ),
)]
#[get("/people-task/tasks/{id}/deliveries")]
pub(crate) async fn list_task_deliveries(
    user: AuthenticatedUser,
    query: Query,
    id: Path<String>,
    request: HttpRequest,
    context: Data<Context>,
) -> Result<HttpResponse, Problem> {
    let paging = Paging::parse(&query)?;
    let id = path_id(&id, "task")?;
    let (caller, actor) = (user.caller.id(), user.actor);
    let load =
        move |database, max_bytes| list::list(database, actor.clone(), id, paging, max_bytes);
    let lists = &context.lists;
    let page = lists
        .page(Some(caller), load, DeliveryResponse::from)
        .await?;
    Ok(page.respond(request.path(), request.query_string()))
}

/// Sends a delivery again now, whatever its status. A delivery that is being sent at this moment is not
/// sent a second time. For the task's creator and administrators.
#[utoipa::path(
    tag = "people-task",
    operation_id = "redeliver",
    params(("id" = String, Path, description = "The delivery's id.")),
    security(("bearer" = [])),
    responses(
        (status = 200, description = "The delivery.", body = DeliveryResponse),
        TokenProblems, Forbidden, NoDelivery, DatabaseProblems,
    ),
)]
#[post("/people-task/deliveries/{id}/redeliver")]
pub(crate) async fn redeliver_delivery(
    user: AuthenticatedUser,
    meta: RequestMeta,
    id: Path<String>,
    context: Data<Context>,
) -> Result<Json<DeliveryResponse>, Problem> {
    let id = path_id(&id, "delivery")?;
    let (database, publisher) = (&context.database, &context.deliveries);
    let delivery = redeliver::redeliver(database, publisher, user.actor, id, meta).await?;
    Ok(Json(delivery.into()))
}
