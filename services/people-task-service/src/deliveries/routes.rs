use std::convert::identity;

use actix_web::web::{Data, Json, Path};
use actix_web::{HttpRequest, HttpResponse, get, post};
use audit_log::RequestMeta;
use auth::{AdminCaller, AdminProblems, TokenProblems};
use database::{Connection, DatabaseProblems};
use http_kit::{BodyProblems, JsonBody, Problem, Query, QueryProblems, path_id};
use listing::Paging;
use messaging::QueueStatus;

use crate::context::Context;
use crate::deliveries::backlog_store::load_backlog;
use crate::deliveries::changes::{self, Cause};
use crate::deliveries::requests::{DeliveryConditions, DeliveryQuery, HostRequest};
use crate::deliveries::responses::{CancelledResponse, QueuesResponse, RedeliveredResponse};
use crate::deliveries::store::{self, Delivery};
use crate::error::{Forbidden, NoDelivery, NoPendingDelivery, NoTask, TaskError};
use crate::tasks::{AuthenticatedUser, Permission, find_permitted};

/// The deliveries of a task's decision, one for each webhook, and of due dates that have passed. For the task's creator and administrators.
#[utoipa::path(
    params(("id" = String, Path, description = "The task's id."), Paging),
    responses(
        (status = 200, description = "One page of deliveries.", body = [Delivery],
            headers(("Link" = String, description = "`<…>; rel=\"next\"` if there is a next page."))),
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
    let (caller, actor) = (user.caller.owner(), user.actor);
    let load = move |connection: &mut Connection, limits| {
        find_permitted(connection, &actor, id, Permission::ViewDeliveries)?;
        Ok::<_, TaskError>(store::load_of_task(connection, id, limits)?)
    };
    let lists = &context.lists;
    let page = lists.page(Some(caller), paging, load, identity::<Delivery>);
    let page = page.await?;
    Ok(page.respond(request.path(), request.query_string()))
}

/// Sends a delivery again now, whatever its status. A delivery that is being sent at this moment is not
/// sent a second time. For the task's creator and administrators.
#[utoipa::path(
    operation_id = "redeliver",
    params(("id" = String, Path, description = "The delivery's id.")),
    responses(
        (status = 200, description = "The delivery.", body = Delivery),
        TokenProblems, Forbidden, NoDelivery, DatabaseProblems,
    ),
)]
#[post("/people-task/deliveries/{id}/redeliver")]
pub(crate) async fn redeliver_delivery(
    user: AuthenticatedUser,
    meta: RequestMeta,
    id: Path<String>,
    context: Data<Context>,
) -> Result<Json<Delivery>, Problem> {
    let id = path_id(&id, "delivery")?;
    let (database, publisher) = (&context.database, &context.deliveries);
    let delivery = changes::redeliver(database, publisher, user.actor, id, meta).await?;
    Ok(Json(delivery))
}

/// All deliveries, newest first. For administrators.
///
/// `filter` takes `status` (`pending`, `sent` or `fail`) and, together with `status:pending` or `status:fail`, `host`: the
/// host of the webhook's URL, without scheme and port. Pending deliveries of a host are sorted by their next attempt, the
/// latest first. Those that were sent are found among the newest 100,000 that have ended. Among deliveries of the same
/// second, the order is that of their identifiers.
#[utoipa::path(
    params(DeliveryConditions, Paging),
    responses(
        (status = 200, description = "One page of deliveries.", body = [Delivery],
            headers(("Link" = String, description = "`<…>; rel=\"next\"` if there is a next page."))),
        QueryProblems, AdminProblems, DatabaseProblems,
    ),
)]
#[get("/people-task/deliveries")]
pub(crate) async fn list_deliveries(
    admin: AdminCaller,
    query: Query,
    request: HttpRequest,
    context: Data<Context>,
) -> Result<HttpResponse, Problem> {
    let query = DeliveryQuery::parse(&query)?;
    let paging = query.paging;
    let load =
        move |connection: &mut Connection, limits| store::load_page(connection, &query, limits);
    let lists = &context.lists;
    let page = lists.page(Some(admin.id()), paging, load, identity::<Delivery>);
    let page = page.await?;
    Ok(page.respond(request.path(), request.query_string()))
}

/// Cancels a pending delivery, which then has failed. If it is being sent at this moment, the receiver may get it, but it
/// is not tried again. For administrators.
#[utoipa::path(
    params(("id" = String, Path, description = "The delivery's id.")),
    responses(
        (status = 200, description = "The delivery.", body = Delivery),
        AdminProblems, NoPendingDelivery, DatabaseProblems,
    ),
)]
#[post("/people-task/deliveries/{id}/cancel")]
pub(crate) async fn cancel_delivery(
    admin: AdminCaller,
    meta: RequestMeta,
    id: Path<String>,
    context: Data<Context>,
) -> Result<Json<Delivery>, Problem> {
    let id = path_id(&id, "delivery")?;
    let cancelled = changes::cancel(&context.database, id, Cause::new(&admin, meta));
    Ok(Json(cancelled.await?))
}

/// The values that changes of a host's deliveries extract.
pub(super) type HostInput = (AdminCaller, RequestMeta, JsonBody, Data<Context>);

/// Cancels pending deliveries of a host, at most 1,000 in one call, those first whose next attempt comes first. For
/// administrators.
#[utoipa::path(
    request_body = HostRequest,
    responses(
        (status = 200, description = "How many were cancelled, and how many are left.", body = CancelledResponse),
        BodyProblems, AdminProblems, DatabaseProblems,
    ),
)]
#[post("/people-task/deliveries/cancel")]
pub(crate) async fn cancel_deliveries(
    (admin, meta, body, context): HostInput,
) -> Result<Json<CancelledResponse>, Problem> {
    let host = HostRequest::parse(body.0)?.host;
    let changed = changes::cancel_of_host(&context.database, host, Cause::new(&admin, meta));
    let (cancelled, remaining) = changed.await?;
    Ok(Json(CancelledResponse {
        cancelled,
        remaining,
    }))
}

/// Sends failed deliveries of a host again, at most 1,000 in one call, the oldest first. For administrators.
#[utoipa::path(
    request_body = HostRequest,
    responses(
        (status = 200, description = "How many are sent again, and how many are left.", body = RedeliveredResponse),
        BodyProblems, AdminProblems, DatabaseProblems,
    ),
)]
#[post("/people-task/deliveries/redeliver")]
pub(crate) async fn redeliver_deliveries(
    (admin, meta, body, context): HostInput,
) -> Result<Json<RedeliveredResponse>, Problem> {
    let host = HostRequest::parse(body.0)?.host;
    let (database, publisher) = (&context.database, &context.deliveries);
    let changed = changes::redeliver_of_host(database, publisher, host, Cause::new(&admin, meta));
    let (redelivered, remaining) = changed.await?;
    Ok(Json(RedeliveredResponse {
        redelivered,
        remaining,
    }))
}

/// What waits to be delivered: the queue of messages, and the deliveries that have not ended. For administrators.
#[utoipa::path(
    operation_id = "getDeliveryQueues",
    responses(
        (status = 200, description = "The queue and the deliveries.", body = QueuesResponse),
        AdminProblems, DatabaseProblems,
    ),
)]
#[get("/people-task/queues")]
pub(crate) async fn delivery_queues(
    admin: AdminCaller,
    context: Data<Context>,
) -> Result<Json<QueuesResponse>, Problem> {
    let lists = &context.lists;
    let backlog = lists.query(Some(admin.id()), load_backlog).await?;
    Ok(Json(QueuesResponse {
        queues: vec![QueueStatus::from(&context.deliveries)],
        deliveries: backlog,
    }))
}
