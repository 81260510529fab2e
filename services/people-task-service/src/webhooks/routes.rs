use actix_web::http::header::{CACHE_CONTROL, ContentType, HeaderValue};
use actix_web::web::{Data, Json, Path};
use actix_web::{HttpRequest, HttpResponse, delete, get, post};
use audit_log::RequestMeta;
use auth::{JwkSet, TokenProblems};
use database::DatabaseProblems;
use http_kit::{JsonBody, Problem, combine_errors, path_id};
use serde_json::json;

use crate::context::Context;
use crate::error::{
    Forbidden, InvalidWebhook, NoMoreWebhooks, NoTask, NoTest, NoWebhook, TaskError,
};
use crate::idempotency::{self, IDEMPOTENT_REPLAYED, IdempotencyKeyHeader, Operation};
use crate::plugin_paths;
use crate::tasks::AuthenticatedUser;
use crate::webhooks::register::{RegisteredWebhook, Registrations};
use crate::webhooks::requests::RegisterWebhookRequest;
use crate::webhooks::responses::{WebhookResponse, WebhookTestResponse};
use crate::webhooks::{manage, register, send_test};

/// Registers a webhook for a pending task. A task has at most 20, and at most 10 of approvers and requesters. When the
/// task is decided, it is sent to the URL by POST, signed as Standard Webhooks describes, until a 2xx response. Under
/// `/plugins/appmixer/utils/tasks` the task may be decided already: then it is sent at once.
///
/// A webhook whose `events` have `due` is also called when `decisionBy` passes while the task is pending. The body is the
/// task with `status: "due"`, and the call has its own `webhook-id`. The task stays pending and can still be decided.
/// This happens once for each date: if `decisionBy` is later changed to a later date, it happens again. A webhook that is
/// registered when the date has passed is called for it at once.
///
/// A webhook whose `events` have `cancelled` is called when the task is withdrawn, with `status: "cancelled"` and the reason
/// as `comment`. Others then hear nothing.
///
/// `include`, `headers`, `method`, `body` and `success` make calls that flow engines take as they are. `headers`, `method` and
/// `body` to an address that is not public are only for origins that the operator lists in `WEBHOOK_ENGINE_ORIGINS`.
#[utoipa::path(
    params(IdempotencyKeyHeader),
    request_body = RegisterWebhookRequest,
    responses(
        (status = 200, description = "The webhook.", body = WebhookResponse, headers(("Idempotent-Replayed" = String, description = "`true` if an earlier request with this key got this answer."))),
        InvalidWebhook, TokenProblems, Forbidden, NoTask, NoMoreWebhooks, DatabaseProblems,
    ),
)]
#[post("/people-task/webhooks")]
pub(crate) async fn register_webhook(
    user: AuthenticatedUser,
    JsonBody(body): JsonBody,
    meta: RequestMeta,
    request: HttpRequest,
    (context, registrations): (Data<Context>, Data<Registrations>),
) -> Result<HttpResponse, Problem> {
    let is_plugin = plugin_paths::is_plugin_request(&request);
    let (by, keys) = (user.caller.id(), &context.repeat_keys);
    let repeat = idempotency::repeatable(&request, &body, keys, Operation::RegisterWebhook, by);
    let new = combine_errors(RegisterWebhookRequest::parse(body), repeat)?;
    let registered = register::register(&context, &registrations, user, new, is_plugin, meta);
    let registered = registered.await;
    if let Err(TaskError::Repeat(error)) = &registered {
        error.count(Operation::RegisterWebhook);
    }
    Ok(match registered? {
        RegisteredWebhook::New(webhook, _) => {
            HttpResponse::Ok().json(WebhookResponse::new(webhook, is_plugin))
        }
        RegisteredWebhook::Earlier(answer) => {
            idempotency::count(Operation::RegisterWebhook, "replayed");
            HttpResponse::Ok()
                .insert_header(IDEMPOTENT_REPLAYED)
                .content_type(ContentType::json())
                .body(answer.body)
        }
    })
}

/// The webhooks of a task, oldest first. The task's creator, the user who registered a webhook and administrators see its
/// whole URL, others the scheme and the host.
#[utoipa::path(
    params(("id" = String, Path, description = "The task's id.")),
    responses(
        (status = 200, description = "At most 20 webhooks.", body = [WebhookResponse]),
        TokenProblems, NoTask, DatabaseProblems,
    ),
)]
#[get("/people-task/tasks/{id}/webhooks")]
pub(crate) async fn list_task_webhooks(
    user: AuthenticatedUser,
    id: Path<String>,
    context: Data<Context>,
) -> Result<Json<Vec<WebhookResponse>>, Problem> {
    let id = path_id(&id, "task")?;
    let webhooks = manage::list(&context.database, user.actor, id).await?;
    let webhooks = webhooks.into_iter().map(|w| WebhookResponse::new(w, false));
    Ok(Json(webhooks.collect()))
}

/// Deletes a webhook. Prefer `DELETE`, which does the same.
#[utoipa::path(
    params(("id" = String, Path, description = "The webhook's id.")),
    responses(
        (status = 200, description = "The webhook is deleted: `{}`.", body = Object),
        TokenProblems, Forbidden, NoWebhook, DatabaseProblems,
    ),
)]
#[get("/people-task/webhooks/{id}")]
pub(crate) async fn delete_webhook_by_get(input: DeleteInput) -> Result<HttpResponse, Problem> {
    delete_by_id(input).await
}

/// Deletes a webhook with its delivery. For the user who registered it, the task's creator and
/// administrators.
#[utoipa::path(
    params(("id" = String, Path, description = "The webhook's id.")),
    responses(
        (status = 200, description = "The webhook is deleted: `{}`.", body = Object),
        TokenProblems, Forbidden, NoWebhook, DatabaseProblems,
    ),
)]
#[delete("/people-task/webhooks/{id}")]
pub(crate) async fn delete_webhook(input: DeleteInput) -> Result<HttpResponse, Problem> {
    delete_by_id(input).await
}

type DeleteInput = (AuthenticatedUser, RequestMeta, Path<String>, Data<Context>);

async fn delete_by_id((user, meta, id, context): DeleteInput) -> Result<HttpResponse, Problem> {
    manage::delete(&context.database, user, path_id(&id, "webhook")?, meta).await?;
    let no_store = (CACHE_CONTROL, HeaderValue::from_static("no-store"));
    Ok(HttpResponse::Ok().insert_header(no_store).json(json!({})))
}

/// Tries a webhook: its receiver gets one call as at a decision, signed, with the headers, the method and the body of the
/// registration, with the header `webhook-test: true` and with `status: "test"` for the task, which is no decision. The
/// response says what the receiver answered, without the answer's body. It is not repeated, and changes nothing else.
///
/// An engine that looks at neither acts as at a decision: a paused flow goes on. For the user who registered the webhook,
/// the task's creator and administrators: 10 within a minute for each, 60 for all together.
#[utoipa::path(
    params(("id" = String, Path, description = "The webhook's id.")),
    responses(
        (status = 200, description = "What the receiver answered.", body = WebhookTestResponse),
        TokenProblems, Forbidden, NoWebhook, NoTest, DatabaseProblems,
    ),
)]
#[post("/people-task/webhooks/{id}/test")]
pub(crate) async fn test_webhook(
    user: AuthenticatedUser,
    meta: RequestMeta,
    id: Path<String>,
    context: Data<Context>,
) -> Result<Json<WebhookTestResponse>, Problem> {
    let id = path_id(&id, "webhook")?;
    let (id, result) = send_test::send_test(&context.database, user, id, meta).await?;
    Ok(Json(WebhookTestResponse { id, result }))
}

/// The public keys for `v1a` signatures, as a JWK set. Each key also has the `whpk_…` form of Standard
/// Webhooks in `whpk`.
#[utoipa::path(
    responses((status = 200, description = "The keys, the one in use first.", body = Object)),
    security(())
)]
#[get("/.well-known/webhook-keys.json")]
pub(crate) async fn webhook_keys(context: Data<Context>) -> Json<JwkSet> {
    Json(context.signer.published())
}
