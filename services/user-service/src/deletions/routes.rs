//! The HTTP side of deletions.

use actix_web::http::header::LOCATION;
use actix_web::web::{Data, Json, Path};
use actix_web::{HttpRequest, HttpResponse, delete, get};
use audit_log::RequestMeta;
use auth::AdminCaller;
use http_kit::{Problem, Query, path_id};
use listing::Paging;
use serde::Serialize;
use serde_json::Value;
use utoipa::ToSchema;
use values::{Secret, Timestamp, UserId};

use super::error::{CancelProblems, DeleteProblems, TicketProblems};
use super::start::{cancel, list, start, status};
use super::store::Deletion;
use crate::audit::RequestActor;
use crate::context::Context;
use auth::AdminProblems;
use http_kit::QueryProblems;
use service_http::DatabaseProblems;

/// Where to ask how far a deletion is.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = DeletionTicket)]
struct Ticket {
    /// 64 hexadecimal digits.
    ticket: String,
}

/// How far a deletion is.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct DeletionStatus {
    /// `in-progress`, `completed`, `failed` or `cancelled`.
    #[schema(example = "in-progress")]
    status: String,
    /// Steps that are finished; it never falls.
    #[schema(example = 3)]
    steps_done: i32,
    /// Steps in all; it never changes.
    #[schema(example = 8)]
    steps_total: i32,
    /// The problem that ended it, when it failed: which step, and why.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Object>)]
    failure: Option<Value>,
}

impl From<Deletion> for DeletionStatus {
    fn from(deletion: Deletion) -> Self {
        Self {
            status: deletion.status,
            steps_done: deletion.steps_done,
            steps_total: deletion.steps_total,
            failure: deletion.failure,
        }
    }
}

/// A deletion in the list of all.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = Deletion)]
struct ListedDeletion {
    ticket: String,
    #[schema(value_type = String, example = "65b8f0a2c3d4e5f601234567")]
    user_id: UserId,
    #[serde(flatten)]
    status: DeletionStatus,
    #[schema(value_type = String, format = DateTime)]
    created: Timestamp,
    /// Null while it is in progress.
    #[schema(value_type = Option<String>, format = DateTime)]
    finished: Option<Timestamp>,
}

impl From<Deletion> for ListedDeletion {
    fn from(deletion: Deletion) -> Self {
        Self {
            ticket: deletion.ticket.clone(),
            user_id: deletion.user_id,
            created: deletion.created.into(),
            finished: deletion.finished.map(Timestamp::from),
            status: deletion.into(),
        }
    }
}

/// Delete a user
///
/// At once deactivates the account and revokes its tokens; the rest is done by a worker and takes a while. Asking
/// again while that goes on answers with the same ticket.
#[utoipa::path(
    tag = "users",
    params(("userId" = String, Path, description = "The user's id: 24 lower-case hexadecimal digits.")),
    responses(
        (status = 200, description = "The deletion is in progress.", body = Ticket,
            headers(("Location" = String, description = "The path of the delete status."))),
        AdminProblems, DeleteProblems, DatabaseProblems
    ),
    security(("bearer" = []))
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
    let ticket = start(&context, id, actor).await?.expose().to_owned();
    let location = format!("/users/{id}/delete-status/{ticket}");
    Ok(HttpResponse::Ok()
        .insert_header((LOCATION, location))
        .json(Ticket { ticket }))
}

fn ticket_of(path: Path<(String, String)>) -> Result<(UserId, Secret), Problem> {
    let what = "deletion ticket";
    let (user, ticket) = path.into_inner();
    Ok((
        path_id(&user, what)?,
        Secret::new(path_id::<String>(&ticket, what)?),
    ))
}

/// Get the status of a deletion
///
/// Answers for 30 days (`DELETE_TICKET_RETENTION`), also after the user is gone.
#[utoipa::path(
    tag = "users",
    params(
        ("userId" = String, Path, description = "The user's id."),
        ("ticket" = String, Path, description = "The ticket of the deletion.")
    ),
    responses(
        (status = 200, description = "How far it is.", body = DeletionStatus),
        AdminProblems, TicketProblems, DatabaseProblems
    ),
    security(("bearer" = []))
)]
#[get("/users/{userId}/delete-status/{ticket}")]
pub(crate) async fn delete_status(
    _admin: AdminCaller,
    context: Data<Context>,
    path: Path<(String, String)>,
) -> Result<Json<DeletionStatus>, Problem> {
    let (user, ticket) = ticket_of(path)?;
    Ok(Json(status(&context, user, ticket).await?.into()))
}

/// Cancel a deletion
///
/// The worker stops before its next step. What was deleted stays deleted, and the account stays
/// inactive until an administrator reactivates it.
#[utoipa::path(
    tag = "users",
    params(
        ("userId" = String, Path, description = "The user's id."),
        ("ticket" = String, Path, description = "The ticket of the deletion.")
    ),
    responses(
        (status = 200, description = "It is cancelled.", body = DeletionStatus),
        AdminProblems, CancelProblems, DatabaseProblems
    ),
    security(("bearer" = []))
)]
#[delete("/users/{userId}/delete-status/{ticket}")]
pub(crate) async fn cancel_deletion(
    admin: AdminCaller,
    context: Data<Context>,
    meta: RequestMeta,
    path: Path<(String, String)>,
) -> Result<Json<DeletionStatus>, Problem> {
    let (user, ticket) = ticket_of(path)?;
    let actor = RequestActor::new(&admin, meta);
    Ok(Json(cancel(&context, user, ticket, actor).await?.into()))
}

/// Get all deletions
///
/// Newest first.
#[utoipa::path(
    tag = "users",
    params(Paging),
    responses(
        (status = 200, description = "The deletions of the page.", body = Vec<ListedDeletion>,
            headers(("Link" = String, description = "`<…>; rel=\"next\"` when there are more."))),
        AdminProblems, QueryProblems, DatabaseProblems
    ),
    security(("bearer" = []))
)]
#[get("/users/deletions")]
pub(crate) async fn list_deletions(
    _admin: AdminCaller,
    context: Data<Context>,
    query: Query,
    request: HttpRequest,
) -> Result<HttpResponse, Problem> {
    let paging = Paging::parse(&query)?;
    let _permit = context.row_budget.acquire_rows(paging).await?;
    let page = list(&context, paging).await?;
    Ok(page.map(ListedDeletion::from).respond(&request))
}
