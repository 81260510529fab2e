use serde::Serialize;
use serde_json::Value;
use utoipa::ToSchema;
use values::{Names as _, Timestamp, UserId};

use super::store::{Deletion, DeletionStatus};

/// The ticket of a deletion.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = DeletionTicket)]
pub(super) struct TicketResponse {
    /// 64 hexadecimal digits.
    pub(super) ticket: String,
}

/// The progress of a deletion.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = DeletionStatus)]
pub(super) struct StatusResponse {
    /// `in-progress`, `completed`, `failed` or `cancelled`.
    #[schema(example = "in-progress")]
    status: String,
    /// The number of finished steps. It never decreases.
    #[schema(example = 3)]
    steps_done: i32,
    /// The number of all steps. It never changes.
    #[schema(example = 8)]
    steps_total: i32,
    /// The problem that ended a failed deletion: which step failed, and why.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Object>)]
    failure: Option<Value>,
    /// While the deletion is in progress, and once there are some: how many of the user's tasks it has deleted.
    #[serde(skip_serializing_if = "Option::is_none")]
    deleted_tasks: Option<i64>,
}

impl From<Deletion> for StatusResponse {
    fn from(deletion: Deletion) -> Self {
        let in_progress = deletion.status == DeletionStatus::InProgress.name();
        let deleted_tasks = Some(deletion.deleted_tasks).filter(|tasks| in_progress && *tasks > 0);
        Self {
            deleted_tasks,
            status: deletion.status,
            steps_done: deletion.steps_done,
            steps_total: deletion.steps_total,
            failure: deletion.failure,
        }
    }
}

/// The result of starting failed deletions again.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = RetriedDeletions)]
pub(super) struct RetryResponse {
    /// The number of deletions that are in progress again.
    #[schema(example = 12)]
    pub(super) retried: usize,
    /// Whether there may be more: then call again.
    pub(super) more: bool,
}

/// A deletion in the list of all deletions.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = Deletion)]
pub(super) struct DeletionResponse {
    ticket: String,
    #[schema(value_type = String, example = "65b8f0a2c3d4e5f601234567")]
    user_id: UserId,
    #[serde(flatten)]
    status: StatusResponse,
    #[schema(value_type = String, format = DateTime)]
    created: Timestamp,
    /// Null while the deletion is in progress.
    #[schema(value_type = Option<String>, format = DateTime)]
    finished: Option<Timestamp>,
}

impl From<Deletion> for DeletionResponse {
    fn from(deletion: Deletion) -> Self {
        Self {
            ticket: deletion.ticket.clone(),
            user_id: deletion.user_id,
            created: deletion.created.into(),
            finished: deletion.finished.map(Timestamp::from),
            status: deletion.into(),
        }
    }
}
