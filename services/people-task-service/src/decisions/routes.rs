use actix_web::put;
use actix_web::web::{Data, Path};
use audit_log::RequestMeta;
use auth::TokenProblems;
use database::DatabaseProblems;
use http_kit::{BodyProblems, OptionalJsonBody, Problem, combine_errors, path_id};

use crate::decisions::decide::{Choice, Decision, Decisions, decide};
use crate::decisions::requests::DecisionRequest;
use crate::tasks::credentials::PartialCredentials;
use crate::tasks::error::{Changed, Forbidden, NoTask};
use crate::tasks::projection::FieldSelection;
use crate::tasks::requests::{IfMatch, Precondition};
use crate::tasks::responses::TaskResponse;
use crate::tasks::secrets::PresentedSecret;

/// Approves a pending task and triggers its webhooks. If several decisions arrive at once, one succeeds.
#[utoipa::path(
    tag = "people-task",
    operation_id = "approveTask",
    params(("id" = String, Path, description = "The task's id."), FieldSelection, IfMatch),
    request_body = Option<DecisionRequest>,
    security(("bearer" = []), ("taskSecret" = []), ("taskSecretInQuery" = []), ()),
    responses(
        (status = 200, description = "The task, approved.", body = TaskResponse, headers(("ETag" = String, description = "The task's version."))),
        BodyProblems, TokenProblems, Forbidden, NoTask, Changed, DatabaseProblems,
    ),
)]
#[put("/people-task/tasks/{id}/approve")]
pub(crate) async fn approve_task(input: DecisionInput) -> Result<TaskResponse, Problem> {
    decide_task(input, Decision::Approve).await
}

/// Rejects a pending task and triggers its webhooks. If several decisions arrive at once, one succeeds. A task with
/// `commentRequired` is rejected only with a `comment`.
#[utoipa::path(
    tag = "people-task",
    operation_id = "rejectTask",
    params(("id" = String, Path, description = "The task's id."), FieldSelection, IfMatch),
    request_body = Option<DecisionRequest>,
    security(("bearer" = []), ("taskSecret" = []), ("taskSecretInQuery" = []), ()),
    responses(
        (status = 200, description = "The task, rejected.", body = TaskResponse, headers(("ETag" = String, description = "The task's version."))),
        BodyProblems, TokenProblems, Forbidden, NoTask, Changed, DatabaseProblems,
    ),
)]
#[put("/people-task/tasks/{id}/reject")]
pub(crate) async fn reject_task(input: DecisionInput) -> Result<TaskResponse, Problem> {
    decide_task(input, Decision::Reject).await
}

/// The values that both routes extract.
type DecisionInput = (
    PartialCredentials,
    Result<OptionalJsonBody, Problem>,
    Result<Precondition, Problem>,
    Result<FieldSelection, Problem>,
    RequestMeta,
    Path<String>,
    Data<Decisions>,
);

async fn decide_task(
    (credentials, body, precondition, fields, meta, id, decisions): DecisionInput,
    decision: Decision,
) -> Result<TaskResponse, Problem> {
    let (secret, body) = match body.and_then(DecisionRequest::parse) {
        Ok(body) => (
            Ok(body.secret.as_ref().map(PresentedSecret::from)),
            Some(body),
        ),
        Err(problem) => (Err(problem), None),
    };
    let conditions = combine_errors(precondition, fields);
    let (credentials, (precondition, fields)) =
        combine_errors(credentials.with_secret(secret), conditions)?;
    let id = path_id(&id, "task")?;
    let (comment, version) = body.map_or((None, None), |body| (body.comment, body.version));
    let choice = Choice {
        decision,
        comment,
        precondition: precondition.and(version),
    };
    let (task, relations) = decide(&decisions, credentials.0, id, choice, meta).await?;
    Ok(TaskResponse::new(task, relations, &fields))
}
