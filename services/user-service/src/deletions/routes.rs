//! The HTTP side of deletions, and of the queues of this service's workers.

use std::convert;

use actix_web::http::header::LOCATION;
use actix_web::web::{Data, Json, Path};
use actix_web::{HttpRequest, HttpResponse, delete, get, post};
use audit_log::RequestMeta;
use auth::{AdminCaller, AdminProblems};
use database::{Connection, DatabaseProblems, Error};
use http_kit::{Problem, Query, QueryProblems, combine_errors, path_id};
use jobs::Backlog;
use listing::Paging;
use messaging::QueueStatus;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use values::{Secret, UserId};

use super::requests::{DeletionConditions, DeletionFilter};
use super::store::{self, Deletion, DeletionProgress};
use super::{JOBS, tickets};
use crate::audit::RequestActor;
use crate::context::Context;
use crate::error::UserError;
use crate::notifications;

/// The path of a deletion's status.
#[derive(Deserialize, utoipa::IntoParams)]
#[serde(rename_all = "camelCase")]
#[into_params(parameter_in = Path)]
struct TicketPath {
    /// The user's id.
    user_id: String,
    /// The ticket of the deletion.
    ticket: String,
}

impl TicketPath {
    fn parse(&self) -> Result<(UserId, Secret), Problem> {
        let what = "deletion ticket";
        let ticket = path_id::<String>(&self.ticket, what)?;
        Ok((path_id(&self.user_id, what)?, Secret::new(ticket)))
    }
}

/// The ticket of a deletion.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = DeletionTicket)]
struct TicketResponse {
    /// 64 hexadecimal digits.
    ticket: String,
}

/// The result of starting failed deletions again.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = RetriedDeletions)]
struct RetryResponse {
    /// The number of deletions that are in progress again.
    #[schema(example = 12)]
    retried: usize,
    /// Whether there may be more: then call again.
    more: bool,
}

/// The jobs that wait for workers.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = UserQueues)]
pub(crate) struct QueuesResponse {
    /// The queues of messages. The work itself is in the database.
    queues: Vec<QueueStatus>,
    /// The jobs that have not ended.
    jobs: Vec<Backlog>,
}

/// Delete a user
///
/// Deactivates the account and revokes its tokens at once. A worker does the rest, which takes a while. While
/// the deletion is in progress, repeating the request returns the same ticket.
#[utoipa::path(
    responses(
        (status = 200, description = "The deletion is in progress.", body = TicketResponse,
            headers(("Location" = String, description = "The path of the delete status."))),
        AdminProblems, DeleteProblems, DatabaseProblems
    )
)]
#[delete("/users/{userId}")]
pub(crate) async fn delete_user(
    admin: AdminCaller,
    context: Data<Context>,
    meta: RequestMeta,
    id: Path<String>,
) -> Result<HttpResponse, Problem> {
    let id = path_id::<UserId>(&id, "user")?;
    let actor = RequestActor::new(&admin, meta);
    let ticket = tickets::start(&context, id, actor).await?;
    let ticket = ticket.expose().to_owned();
    let location = format!("/users/{id}/delete-status/{ticket}");
    Ok(HttpResponse::Ok()
        .insert_header((LOCATION, location))
        .json(TicketResponse { ticket }))
}

/// Get the status of a deletion
///
/// Available for 30 days after the deletion has ended (`DELETE_TICKET_RETENTION`), although the user no
/// longer exists.
#[utoipa::path(
    operation_id = "getDeletionStatus",
    params(TicketPath),
    responses(
        (status = 200, description = "The progress of the deletion.", body = DeletionProgress),
        AdminProblems, TicketProblems, DatabaseProblems
    )
)]
#[get("/users/{userId}/delete-status/{ticket}")]
pub(crate) async fn delete_status(
    _admin: AdminCaller,
    context: Data<Context>,
    path: Path<TicketPath>,
) -> Result<Json<DeletionProgress>, Problem> {
    let (user, ticket) = path.parse()?;
    let find = move |connection: &mut Connection| store::find(connection, user, &ticket);
    let found = context.database.run(find).await?;
    Ok(Json(found.ok_or(UserError::NotFound("deletion ticket"))?))
}

/// Cancel a deletion
///
/// The worker stops before its next step. What was deleted stays deleted, and the account stays inactive
/// until an administrator reactivates it.
#[utoipa::path(
    params(TicketPath),
    responses(
        (status = 200, description = "The deletion is cancelled.", body = DeletionProgress),
        AdminProblems, CancelProblems, DatabaseProblems
    )
)]
#[delete("/users/{userId}/delete-status/{ticket}")]
pub(crate) async fn cancel_deletion(
    admin: AdminCaller,
    context: Data<Context>,
    meta: RequestMeta,
    path: Path<TicketPath>,
) -> Result<Json<DeletionProgress>, Problem> {
    let (user, ticket) = path.parse()?;
    let actor = RequestActor::new(&admin, meta);
    Ok(Json(tickets::cancel(&context, user, ticket, actor).await?))
}

/// Start failed deletions again
///
/// Each continues at the step that failed, under its old ticket, at most 1,000 in one call. Deletions of users who were
/// reactivated after the failure are left as they are, and so are those that would skip the flow engine's steps: delete
/// these users again.
#[utoipa::path(
    responses(
        (status = 200, description = "The deletions are in progress again.", body = RetryResponse),
        AdminProblems, DatabaseProblems
    )
)]
#[post("/users/deletions/retry")]
pub(crate) async fn retry_deletions(
    admin: AdminCaller,
    context: Data<Context>,
    meta: RequestMeta,
) -> Result<Json<RetryResponse>, Problem> {
    let actor = RequestActor::new(&admin, meta);
    let (retried, more) = tickets::retry_failed(&context, actor).await?;
    Ok(Json(RetryResponse { retried, more }))
}

/// Get all deletions
///
/// Newest first, all or those of one status.
#[utoipa::path(
    params(DeletionConditions, Paging),
    responses(
        (status = 200, description = "The deletions of the page.", body = Vec<Deletion>,
            headers(("Link" = String, description = "`<…>; rel=\"next\"` when there are more."))),
        AdminProblems, QueryProblems, DatabaseProblems
    )
)]
#[get("/users/deletions")]
pub(crate) async fn list_deletions(
    admin: AdminCaller,
    context: Data<Context>,
    query: Query,
    request: HttpRequest,
) -> Result<HttpResponse, Problem> {
    let conditions = DeletionConditions::parse(&query);
    let status = conditions.and_then(|conditions| conditions.only(DeletionFilter::Status));
    let (paging, status) = combine_errors(Paging::parse(&query), status)?;
    let load =
        move |connection: &mut Connection, limits| store::load_page(connection, status, limits);
    let lists = &context.lists;
    let page = lists.page(Some(admin.id()), paging, load, convert::identity);
    let page = page.await?;
    Ok(page.respond(request.path(), request.query_string()))
}

/// Get the queues
///
/// The deletions and notifications that wait for workers, and the queues of messages about them.
#[utoipa::path(
    operation_id = "getUserQueues",
    responses(
        (status = 200, description = "The queues and jobs.", body = QueuesResponse),
        AdminProblems, DatabaseProblems
    )
)]
#[get("/users/queues")]
pub(crate) async fn user_queues(
    admin: AdminCaller,
    context: Data<Context>,
) -> Result<Json<QueuesResponse>, Problem> {
    let load = |connection: &mut Connection| {
        let deletions = JOBS.backlog(connection)?;
        Ok::<_, Error>(vec![deletions, notifications::JOBS.backlog(connection)?])
    };
    let jobs = context.lists.query(Some(admin.id()), load).await?;
    let queues = [&context.deletions, &context.notifications];
    Ok(Json(QueuesResponse {
        queues: queues.map(QueueStatus::from).into(),
        jobs,
    }))
}

http_kit::problem_responses! {
    DeleteProblems {
        UserError::NotFound("user"),
        UserError::LastAdmin => "The last active administrator cannot be deleted.",
    }
    TicketProblems {
        UserError::NotFound("deletion ticket"),
    }
    CancelProblems: TicketProblems {
        UserError::DeletionEnded,
    }
}
