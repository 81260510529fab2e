use messaging::QueueStatus;
use serde::Serialize;
use utoipa::ToSchema;

use crate::deliveries::backlog_store::Backlog;

/// The deliveries that have not ended.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = DeliveryBacklog)]
pub(super) struct BacklogResponse {
    /// How many deliveries are pending, counted up to 100,000.
    #[schema(example = 120)]
    pending: i64,
    /// How many should be under way now.
    #[schema(example = 3)]
    due: i64,
    /// How long the oldest of them has waited, in seconds.
    #[schema(example = 0.4)]
    oldest_due_seconds: f64,
    /// How many are not tried any more, because they ended workers, until they are sent again.
    #[schema(example = 0)]
    parked: i64,
    /// How many wait for a paused host, counted up to 100,000.
    #[schema(example = 80)]
    paused: i64,
    /// How many hosts are paused.
    #[schema(example = 1)]
    paused_hosts: i64,
}

/// What waits to be delivered.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = DeliveryQueues)]
pub(super) struct QueuesResponse {
    /// The queues of messages. The work itself is in the database.
    pub(super) queues: Vec<QueueStatus>,
    /// The deliveries that have not ended.
    pub(super) deliveries: BacklogResponse,
}

impl From<Backlog> for BacklogResponse {
    #[expect(
        clippy::cast_precision_loss,
        reason = "milliseconds stay far below 2^52"
    )]
    fn from(backlog: Backlog) -> Self {
        Self {
            pending: backlog.pending,
            due: backlog.due,
            oldest_due_seconds: backlog.oldest as f64 / 1000.0,
            parked: backlog.parked,
            paused: backlog.paused,
            paused_hosts: backlog.paused_hosts,
        }
    }
}
