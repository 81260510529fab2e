use actix_web::web::Data;
use actix_web::{HttpRequest, post};
use audit_log::RequestMeta;
use auth::TokenProblems;
use database::DatabaseProblems;
use http_kit::{JsonBody, Problem, combine_errors};

use crate::context::Context;
use crate::creations::create;
use crate::creations::requests::NewTaskRequest;
use crate::creations::responses::{CreationAnswer, NewTaskResponse};
use crate::creations::write::Creations;
use crate::error::{InvalidWebhook, TaskError};
use crate::idempotency::{IdempotencyKeyHeader, Operation, Repeated, repeatable};
use crate::quotas::QuotaExceeded;
use crate::tasks::{AuthenticatedUser, FieldSelection, TaskField};

/// Creates a task, with webhooks if the body has some. This response is the only one with both secrets.
///
/// A request with an `Idempotency-Key` can be repeated: within 24 hours the same user gets the same answer for the same
/// key and body, and nothing is created again.
#[utoipa::path(
    params(FieldSelection, IdempotencyKeyHeader),
    request_body = NewTaskRequest,
    responses(
        (status = 200, description = "The task with `public` and its two secrets.", body = NewTaskResponse, headers(("ETag" = String, description = "The task's version."), ("Idempotent-Replayed" = String, description = "`true` if an earlier request with this key got this answer."))),
        InvalidWebhook, TokenProblems, QuotaExceeded, Repeated, DatabaseProblems,
    ),
)]
#[post("/people-task/tasks")]
pub(crate) async fn create_task(
    user: AuthenticatedUser,
    JsonBody(body): JsonBody,
    meta: RequestMeta,
    request: HttpRequest,
    (creations, context): (Data<Creations>, Data<Context>),
) -> Result<CreationAnswer, Problem> {
    let (by, keys) = (user.caller.id(), &context.repeat_keys);
    let repeat = repeatable(&request, &body, keys, Operation::CreateTask, by);
    let headers = combine_errors(FieldSelection::of(&request), repeat);
    let (body, (fields, repeat)) = combine_errors(NewTaskRequest::parse(body), headers)?;
    let fields = fields.with(TaskField::Public);
    let created = create::create(&context, &creations, user, body, fields, repeat, meta).await;
    if let Err(TaskError::Repeat(error)) = &created {
        error.count(Operation::CreateTask);
    }
    Ok(created?)
}
