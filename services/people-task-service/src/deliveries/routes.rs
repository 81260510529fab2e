use actix_web::web::{Data, Json, Path};
use actix_web::{HttpRequest, HttpResponse, get, post};
use audit_log::RequestMeta;
use database::Database;
use http_kit::{Problem, Query, path_id};
use listing::{Paging, RowBudget};
use messaging::Publisher;
use serde::Serialize;
use utoipa::ToSchema;
use values::{DeliveryId, Timestamp, WebhookId};

use crate::deliveries::{Attempt, Tried};
use crate::problems::{Forbidden, NoDelivery, NoTask};
use crate::status::{DeliveryStatus, TaskStatus};
use crate::tasks::SignedIn;
use auth::TokenProblems;
use http_kit::QueryProblems;
use service_http::DatabaseProblems;

/// A decision on its way to one webhook.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = Delivery)]
pub(crate) struct DeliveryAnswer {
    /// The delivery's identifier: the `webhook-id` header of every attempt.
    #[schema(value_type = String, example = "665f1c2ab3d4e5f60718293c")]
    id: DeliveryId,
    /// The webhook.
    #[schema(value_type = String, example = "665f1c2ab3d4e5f60718293b")]
    webhook_id: WebhookId,
    /// Where it is sent.
    #[schema(example = "https://engine.example.com/flows/1?correlationId=42")]
    url: String,
    /// What was decided.
    task_status: TaskStatus,
    /// Where the delivery stands: `pending` between attempts too.
    status: DeliveryStatus,
    /// When the task was decided.
    #[schema(value_type = String, format = DateTime)]
    created: Timestamp,
    /// When it is tried next; null when it is not.
    #[schema(value_type = Option<String>, format = DateTime, required = true)]
    next_attempt: Option<Timestamp>,
    /// What happened so far, oldest first: the newest 100 attempts.
    attempts: Vec<AttemptAnswer>,
}

/// One attempt of a delivery.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = DeliveryAttempt)]
struct AttemptAnswer {
    /// When it began.
    #[schema(value_type = String, format = DateTime)]
    at: Timestamp,
    /// How long it took, in milliseconds.
    #[schema(example = 41)]
    duration_ms: i32,
    /// The status of the answer; null without an answer.
    #[schema(required = true, example = 503)]
    status_code: Option<i32>,
    /// Why there was no answer; null with an answer.
    #[schema(required = true)]
    error: Option<String>,
    /// The first KiB of the answer.
    #[schema(required = true)]
    response: Option<String>,
}

impl From<Attempt> for AttemptAnswer {
    fn from(attempt: Attempt) -> Self {
        Self {
            at: Timestamp(attempt.at),
            duration_ms: attempt.duration_ms,
            status_code: attempt.status_code,
            error: attempt.error,
            response: attempt.response,
        }
    }
}

impl From<Tried> for DeliveryAnswer {
    fn from((delivery, attempts): Tried) -> Self {
        let pending = delivery.status == DeliveryStatus::Pending;
        Self {
            id: delivery.id,
            webhook_id: delivery.webhook_id,
            url: delivery.url,
            task_status: delivery.task_status,
            status: delivery.status,
            created: Timestamp(delivery.created),
            next_attempt: pending.then_some(Timestamp(delivery.next_attempt)),
            attempts: attempts.into_iter().map(Into::into).collect(),
        }
    }
}

/// What became of a task's decision: one entry for each webhook. For the task's creator and
/// administrators.
#[utoipa::path(
    tag = "people-task",
    operation_id = "listTaskDeliveries",
    params(("id" = String, Path, description = "The task's id."), Paging),
    security(("bearer" = [])),
    responses(
        (status = 200, description = "One page of deliveries. `Link` names the next one.", body = [DeliveryAnswer]),
        QueryProblems, TokenProblems, Forbidden, NoTask, DatabaseProblems,
    ),
)]
#[get("/people-task/tasks/{id}/deliveries")]
pub(crate) async fn list_task_deliveries(
    who: SignedIn,
    query: Query,
    id: Path<String>,
    request: HttpRequest,
    database: Data<Database>,
    row_budget: Data<RowBudget>,
) -> Result<HttpResponse, Problem> {
    let paging = Paging::parse(&query)?;
    let id = path_id(&id, "task")?;
    let _permit = row_budget.acquire_rows(paging).await?;
    let page = super::list(&database, who.actor, id, paging).await?;
    Ok(page.map(DeliveryAnswer::from).respond(&request))
}

/// Sends a delivery again now, whatever its state. One that is being sent at this moment is not doubled.
/// For the task's creator and administrators.
#[utoipa::path(
    tag = "people-task",
    operation_id = "redeliver",
    params(("id" = String, Path, description = "The delivery's id.")),
    security(("bearer" = [])),
    responses(
        (status = 200, description = "The delivery.", body = DeliveryAnswer),
        TokenProblems, Forbidden, NoDelivery, DatabaseProblems,
    ),
)]
#[post("/people-task/deliveries/{id}/redeliver")]
pub(crate) async fn redeliver(
    who: SignedIn,
    origin: RequestMeta,
    id: Path<String>,
    database: Data<Database>,
    publisher: Data<Publisher>,
) -> Result<Json<DeliveryAnswer>, Problem> {
    let id = path_id(&id, "delivery")?;
    let tried = super::redeliver(&database, &publisher, who.actor, id, origin).await?;
    Ok(Json(tried.into()))
}
