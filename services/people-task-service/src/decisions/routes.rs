use actix_web::web::{Data, Json, Path};
use actix_web::{HttpRequest, get, post, put};
use audit_log::RequestMeta;
use auth::TokenProblems;
use database::DatabaseProblems;
use http_kit::{BodyProblems, OptionalJsonBody, Problem, combine_errors, path_id};
use telemetry::RequestContext;

use crate::context::Context;
use crate::decisions::decide::{self, Decision, DecisionAttempt, Decisions};
use crate::decisions::requests::{CancelRequest, DecisionRequest};
use crate::decisions::store::CancelPreview;
use crate::error::{AlreadyResolved, Changed, Forbidden, NoTask};
use crate::tasks::{Actor, FieldSelection, PartialCredentials, Precondition, TaskResponse};

/// Approves a pending task and triggers its webhooks. If several decisions arrive at once, one succeeds.
#[utoipa::path(
    params(("id" = String, Path, description = "The task's id."), FieldSelection, Precondition),
    request_body = Option<DecisionRequest>,
    security(("bearer" = []), ("taskSecret" = []), ("taskSecretInQuery" = []), ()),
    responses(
        (status = 200, description = "The task, approved.", body = TaskResponse, headers(("ETag" = String, description = "The task's version."))),
        BodyProblems, TokenProblems, Forbidden, NoTask, Changed, DatabaseProblems,
    ),
)]
#[put("/people-task/tasks/{id}/approve")]
pub(crate) async fn approve_task(input: DecisionInput) -> Result<TaskResponse, Problem> {
    resolve_task(input, Decision::APPROVE).await
}

/// Rejects a pending task and triggers its webhooks. If several decisions arrive at once, one succeeds. A task with
/// `commentRequired` is rejected only with a `comment`.
#[utoipa::path(
    params(("id" = String, Path, description = "The task's id."), FieldSelection, Precondition),
    request_body = Option<DecisionRequest>,
    security(("bearer" = []), ("taskSecret" = []), ("taskSecretInQuery" = []), ()),
    responses(
        (status = 200, description = "The task, rejected.", body = TaskResponse, headers(("ETag" = String, description = "The task's version."))),
        BodyProblems, TokenProblems, Forbidden, NoTask, Changed, DatabaseProblems,
    ),
)]
#[put("/people-task/tasks/{id}/reject")]
pub(crate) async fn reject_task(input: DecisionInput) -> Result<TaskResponse, Problem> {
    resolve_task(input, Decision::REJECT).await
}

/// The values that these routes extract.
type DecisionInput = (
    PartialCredentials,
    Result<OptionalJsonBody, Problem>,
    HttpRequest,
    RequestMeta,
    Path<String>,
    Data<Decisions>,
);

/// Withdraws a pending task, so that there is nothing to decide any more. For its creator, its requester and administrators.
/// The task's status becomes `cancelled`, which is final.
///
/// Webhooks whose `events` have `cancelled` are called; others hear nothing. An approver who was asked by mail gets a mail
/// that says so, and no reminders.
#[utoipa::path(
    params(("id" = String, Path, description = "The task's id."), FieldSelection, Precondition),
    request_body = Option<CancelRequest>,
    security(("bearer" = []), ("taskSecret" = []), ("taskSecretInQuery" = []), ()),
    responses(
        (status = 200, description = "The task, cancelled.", body = TaskResponse, headers(("ETag" = String, description = "The task's version."))),
        BodyProblems, TokenProblems, Forbidden, NoTask, Changed, DatabaseProblems,
    ),
)]
#[post("/people-task/tasks/{id}/cancel")]
pub(crate) async fn cancel_task(input: DecisionInput) -> Result<TaskResponse, Problem> {
    resolve_task(input, Decision::CANCEL).await
}

/// Who would hear of it if the caller withdrew the task now. For those who may withdraw it.
#[utoipa::path(
    params(("id" = String, Path, description = "The task's id.")),
    security(("bearer" = []), ("taskSecret" = []), ("taskSecretInQuery" = [])),
    responses(
        (status = 200, description = "The numbers of webhooks.", body = CancelPreview),
        TokenProblems, Forbidden, NoTask, AlreadyResolved, DatabaseProblems,
    ),
)]
#[get("/people-task/tasks/{id}/cancel")]
pub(crate) async fn preview_cancel(
    actor: Actor,
    id: Path<String>,
    context: Data<Context>,
) -> Result<Json<CancelPreview>, Problem> {
    let id = path_id(&id, "task")?;
    let preview = decide::preview_cancel(&context.database, actor, id);
    Ok(Json(preview.await?))
}

async fn resolve_task(
    (credentials, body, request, meta, id, decisions): DecisionInput,
    decision: Decision,
) -> Result<TaskResponse, Problem> {
    let body = body.and_then(|body| DecisionRequest::parse(body, decision.comment_field));
    let conditions = combine_errors(Precondition::of(&request), FieldSelection::of(&request));
    let actor = credentials.with_body(body, |body| body.secret.as_ref());
    let ((actor, body), (precondition, fields)) = combine_errors(actor, conditions)?;
    let attempt = DecisionAttempt {
        actor,
        task: path_id(&id, "task")?,
        decision,
        comment: body.comment,
        precondition: precondition.and(body.version),
        cause: RequestContext::current_or_fresh(),
        meta,
    };
    let (task, relations) = decide::decide(&decisions, attempt).await?;
    Ok(TaskResponse::new(task, relations, &fields))
}
