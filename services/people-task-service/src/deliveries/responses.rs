use serde::Serialize;
use utoipa::ToSchema;
use values::{DeliveryId, Timestamp, WebhookId};

use crate::deliveries::store::{Attempt, DeliveryWithAttempts};
use crate::status::{DeliveryStatus, TaskStatus};

/// A decision on its way to one webhook.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct DeliveryResponse {
    /// The delivery's identifier: the `webhook-id` header of every attempt.
    #[schema(value_type = String, example = "665f1c2ab3d4e5f60718293c")]
    id: DeliveryId,
    /// The webhook's identifier.
    #[schema(value_type = String, example = "665f1c2ab3d4e5f60718293b")]
    webhook_id: WebhookId,
    /// The URL that is called.
    #[schema(example = "https://engine.example.com/flows/1?correlationId=42")]
    url: String,
    /// The decision.
    task_status: TaskStatus,
    /// `pending` until the last attempt ends, then `sent` or `fail`.
    status: DeliveryStatus,
    /// When the task was decided, or the webhook was registered if that was later.
    #[schema(value_type = String, format = DateTime)]
    created: Timestamp,
    /// When the next attempt is due; null if there is none.
    #[schema(value_type = Option<String>, format = DateTime, required = true)]
    next_attempt: Option<Timestamp>,
    /// The newest 100 attempts, oldest first.
    attempts: Vec<AttemptResponse>,
}

/// One attempt of a delivery.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct AttemptResponse {
    /// When it started.
    #[schema(value_type = String, format = DateTime)]
    at: Timestamp,
    /// How long it took, in milliseconds.
    #[schema(example = 41)]
    duration_ms: i32,
    /// The response's status code; null without a response.
    #[schema(required = true, example = 503)]
    status_code: Option<i32>,
    /// Why the attempt failed; null if the response alone says so.
    #[schema(required = true)]
    error: Option<String>,
    /// The first KiB of the response's body.
    #[schema(required = true)]
    response: Option<String>,
}

impl From<Attempt> for AttemptResponse {
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

impl From<DeliveryWithAttempts> for DeliveryResponse {
    fn from((delivery, attempts): DeliveryWithAttempts) -> Self {
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
