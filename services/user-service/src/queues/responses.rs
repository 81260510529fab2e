use jobs::Backlog;
use messaging::QueueStatus;
use serde::Serialize;
use utoipa::ToSchema;

/// The jobs of one kind that have not ended.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = JobBacklog)]
pub(super) struct BacklogResponse {
    /// `deletions` or `notifications`.
    #[schema(example = "deletions")]
    name: &'static str,
    /// How many jobs have not ended.
    #[schema(example = 2)]
    open: i64,
    /// How long the oldest due job has waited for a worker, in seconds.
    #[schema(example = 0.4)]
    overdue_seconds: f64,
}

impl BacklogResponse {
    pub(super) fn new(name: &'static str, backlog: Backlog) -> Self {
        Self {
            name,
            open: backlog.open,
            overdue_seconds: backlog.overdue_seconds,
        }
    }
}

/// The jobs that wait for workers.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = UserQueues)]
pub(super) struct QueuesResponse {
    /// The queues of messages. The work itself is in the database.
    pub(super) queues: Vec<QueueStatus>,
    /// The jobs that have not ended.
    pub(super) jobs: Vec<BacklogResponse>,
}
