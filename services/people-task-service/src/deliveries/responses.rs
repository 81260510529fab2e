use messaging::QueueStatus;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use values::Timestamp;

use crate::deliveries::backlog_store::Backlog;

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

/// What waits to be delivered.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = DeliveryQueues)]
pub(crate) struct QueuesResponse {
    /// The queues of messages. The work itself is in the database.
    pub(crate) queues: Vec<QueueStatus>,
    /// The deliveries that have not ended.
    pub(crate) deliveries: Backlog,
}
