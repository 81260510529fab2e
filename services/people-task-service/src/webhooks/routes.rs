use actix_web::http::header::{CACHE_CONTROL, HeaderValue};
use actix_web::web::{Data, Json, Path};
use actix_web::{HttpRequest, HttpResponse, delete, get, post};
use audit_log::RequestMeta;
use auth::JwkSet;
use database::Database;
use http_kit::{JsonBody, Problem, path_id};
use serde::Serialize;
use serde_json::json;
use utoipa::ToSchema;
use values::{TaskId, WebhookId};

use crate::plugins;
use crate::problems::{Forbidden, NoMoreWebhooks, NoTask, NoWebhook, WebhookBodyProblems};
use crate::status::DeliveryStatus;
use crate::tasks::SignedIn;
use crate::webhooks::signing::WebhookSigner;
use crate::webhooks::{AddressGuard, NewWebhook, Webhook};
use auth::TokenProblems;
use service_http::DatabaseProblems;

/// A url that is called when its task is decided.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = Webhook)]
pub(crate) struct WebhookAnswer {
    /// The webhook's identifier.
    #[schema(value_type = String, example = "665f1c2ab3d4e5f60718293b")]
    id: WebhookId,
    /// The same as `id`; only under `/plugins/appmixer/utils/tasks`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, nullable = false)]
    webhook_id: Option<WebhookId>,
    /// Where it is sent, as it was given.
    #[schema(example = "https://engine.example.com/flows/1?correlationId=42")]
    url: String,
    /// The task.
    #[schema(value_type = String, example = "665f1c2ab3d4e5f60718293a")]
    task_id: TaskId,
    /// `pending` until it was delivered, then `sent`; `fail` when it was given up.
    status: DeliveryStatus,
}

impl WebhookAnswer {
    fn new(webhook: Webhook, with_webhook_id: bool) -> Self {
        Self {
            id: webhook.id,
            webhook_id: with_webhook_id.then_some(webhook.id),
            url: webhook.url,
            task_id: webhook.task_id,
            status: webhook.status,
        }
    }
}

/// What a webhook is registered from.
#[derive(ToSchema)]
#[expect(
    dead_code,
    reason = "it describes the body, which is read field by field"
)]
#[schema(rename_all = "camelCase")]
struct NewWebhookBody {
    /// Where to send: http or https. It is kept as given, with its query.
    #[schema(
        format = "uri",
        max_length = 2048,
        example = "https://engine.example.com/flows/1?correlationId=42"
    )]
    url: String,
    /// The task.
    #[schema(pattern = "^[0-9a-f]{24}$", example = "665f1c2ab3d4e5f60718293a")]
    task_id: String,
    /// A signing secret of Standard Webhooks: `whsec_` and 24 to 64 bytes in base64. With it, calls also
    /// carry a `v1` signature. It is never returned.
    #[schema(
        pattern = "^whsec_([A-Za-z0-9+/]{4}){8,20}([A-Za-z0-9+/]{4}([A-Za-z0-9+/][AQgw]==)?|[A-Za-z0-9+/][AQgw]==|[A-Za-z0-9+/]{2}[AEIMQUYcgkosw048]=)?$"
    )]
    secret: Option<String>,
}

/// Registers a webhook for a pending task; at most 20 for each task. When the task is decided, the task
/// object is sent there by POST, signed as Standard Webhooks describes, until a 2xx answer.
#[utoipa::path(
    tag = "people-task",
    operation_id = "registerWebhook",
    request_body = NewWebhookBody,
    security(("bearer" = [])),
    responses(
        (status = 200, description = "The webhook.", body = WebhookAnswer),
        TokenProblems, Forbidden, NoTask, NoMoreWebhooks, WebhookBodyProblems, DatabaseProblems,
    ),
)]
#[post("/people-task/webhooks")]
pub(crate) async fn register_webhook(
    who: SignedIn,
    JsonBody(fields): JsonBody,
    origin: RequestMeta,
    request: HttpRequest,
    guard: Data<AddressGuard>,
    database: Data<Database>,
) -> Result<Json<WebhookAnswer>, Problem> {
    let newer_path = plugins::is_plugins_request(&request);
    let new = NewWebhook::read(fields, newer_path)?;
    let webhook = super::register(&database, &guard, who, new, origin).await?;
    Ok(Json(WebhookAnswer::new(webhook, newer_path)))
}

/// The webhooks of a task, oldest first.
#[utoipa::path(
    tag = "people-task",
    operation_id = "listTaskWebhooks",
    params(("id" = String, Path, description = "The task's id.")),
    security(("bearer" = [])),
    responses(
        (status = 200, description = "At most 20 webhooks.", body = [WebhookAnswer]),
        TokenProblems, NoTask, DatabaseProblems,
    ),
)]
#[get("/people-task/tasks/{id}/webhooks")]
pub(crate) async fn list_task_webhooks(
    who: SignedIn,
    id: Path<String>,
    database: Data<Database>,
) -> Result<Json<Vec<WebhookAnswer>>, Problem> {
    let id = path_id(&id, "task")?;
    let webhooks = super::of_task(&database, who.actor, id).await?;
    let webhooks = webhooks.into_iter().map(|w| WebhookAnswer::new(w, false));
    Ok(Json(webhooks.collect()))
}

/// Deletes a webhook. Prefer `DELETE`, which does the same.
#[utoipa::path(
    tag = "people-task",
    operation_id = "deleteWebhookByGet",
    params(("id" = String, Path, description = "The webhook's id.")),
    security(("bearer" = [])),
    responses(
        (status = 200, description = "It is gone: `{}`.", body = Object),
        TokenProblems, Forbidden, NoWebhook, DatabaseProblems,
    ),
)]
#[get("/people-task/webhooks/{id}")]
pub(crate) async fn delete_webhook_by_get(
    who: SignedIn,
    origin: RequestMeta,
    id: Path<String>,
    database: Data<Database>,
) -> Result<HttpResponse, Problem> {
    delete_and_answer(who, origin, &id, &database).await
}

/// Deletes a webhook with its deliveries: for who registered it, the task's creator, and administrators.
#[utoipa::path(
    tag = "people-task",
    operation_id = "deleteWebhook",
    params(("id" = String, Path, description = "The webhook's id.")),
    security(("bearer" = [])),
    responses(
        (status = 200, description = "It is gone: `{}`.", body = Object),
        TokenProblems, Forbidden, NoWebhook, DatabaseProblems,
    ),
)]
#[delete("/people-task/webhooks/{id}")]
pub(crate) async fn delete_webhook(
    who: SignedIn,
    origin: RequestMeta,
    id: Path<String>,
    database: Data<Database>,
) -> Result<HttpResponse, Problem> {
    delete_and_answer(who, origin, &id, &database).await
}

async fn delete_and_answer(
    who: SignedIn,
    origin: RequestMeta,
    id: &str,
    database: &Database,
) -> Result<HttpResponse, Problem> {
    super::delete(database, who, path_id(id, "webhook")?, origin).await?;
    // Nobody in between may answer a second one by what the first one got.
    let no_store = (CACHE_CONTROL, HeaderValue::from_static("no-store"));
    Ok(HttpResponse::Ok().insert_header(no_store).json(json!({})))
}

/// The public keys that sign webhooks (`v1a`), as a JWK set whose keys also carry the `whpk_…` form of
/// Standard Webhooks in `whpk`.
#[utoipa::path(
    tag = "people-task",
    operation_id = "webhookKeys",
    responses((status = 200, description = "The keys, the one in use first.", body = Object)),
)]
#[get("/.well-known/webhook-keys.json")]
pub(crate) async fn webhook_keys(signer: Data<WebhookSigner>) -> Json<JwkSet> {
    Json(signer.published())
}
