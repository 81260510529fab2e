use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;
use values::{DeliveryId, Timestamp, WebhookId};

use crate::deliveries::store::Delivery;
use crate::status::{DeliveryStatus, WebhookEvent};

/// A decision, or a due date that has passed, on its way to one webhook.
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
    /// The decision; `due` if the due date has passed.
    task_status: WebhookEvent,
    /// `pending` until the last attempt ends, then `sent` or `fail`.
    status: DeliveryStatus,
    /// When the task was decided or the due date passed, or the webhook was registered if that was later.
    #[schema(value_type = String, format = DateTime)]
    created: Timestamp,
    /// When the next attempt is due; null if there is none.
    #[schema(value_type = Option<String>, format = DateTime, required = true)]
    next_attempt: Option<Timestamp>,
    /// It waits, because the user who registered the webhook has no right to the task now. Absent otherwise.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    #[schema(required = false)]
    suspended: bool,
    /// The newest 100 attempts, oldest first.
    #[schema(value_type = Vec<Attempt>)]
    attempts: Value,
}

/// One attempt of a delivery. The database has it in this form.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Attempt {
    /// When it started.
    #[schema(value_type = String, format = DateTime)]
    pub(crate) at: Timestamp,
    /// How long it took, in milliseconds.
    #[schema(example = 41)]
    pub(crate) duration_ms: i32,
    /// The response's status code; null without a response.
    #[schema(required = true, example = 503)]
    pub(crate) status_code: Option<u16>,
    /// Why the attempt failed; null if the response alone says so.
    #[schema(required = true)]
    pub(crate) error: Option<String>,
    /// The first KiB of the response's body.
    #[schema(required = true)]
    pub(crate) response: Option<String>,
}

/// What came of a call that tried a webhook. The database has it in this form.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = WebhookTestResult)]
pub(crate) struct TestResult {
    /// Whether a delivery with this answer would count as sent.
    pub(crate) success: bool,
    /// When the call was made.
    #[schema(format = DateTime)]
    pub(crate) at: String,
    /// How long it took, in milliseconds.
    #[schema(example = 41)]
    pub(crate) duration_ms: i32,
    /// The answer's status code; null without an answer.
    #[schema(required = true, example = 200)]
    pub(crate) status_code: Option<u16>,
    /// Why it is no success; null if it is, or if the status code alone says so.
    #[schema(required = true)]
    pub(crate) error: Option<String>,
}

/// The result of sending failed deliveries of a host again.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = RedeliveredDeliveries)]
pub(crate) struct RedeliveredResponse {
    /// How many are sent again.
    #[schema(example = 1000)]
    pub(crate) redelivered: usize,
    /// How many failed ones are left, counted up to 100,000: then call again.
    #[schema(example = 250)]
    pub(crate) remaining: i64,
}

/// The result of cancelling the deliveries of a host.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = CancelledDeliveries)]
pub(crate) struct CancelledResponse {
    /// How many were cancelled.
    #[schema(example = 1000)]
    pub(crate) cancelled: usize,
    /// How many pending ones are left, counted up to 100,000: then call again.
    #[schema(example = 250)]
    pub(crate) remaining: i64,
}

impl From<Delivery> for DeliveryResponse {
    fn from(delivery: Delivery) -> Self {
        Self {
            id: delivery.id,
            webhook_id: delivery.webhook_id,
            url: delivery.url,
            task_status: delivery.task_status,
            status: delivery.status,
            created: Timestamp(delivery.created),
            next_attempt: delivery.next_attempt.map(Timestamp),
            suspended: delivery.suspended,
            attempts: delivery.attempt_log,
        }
    }
}
