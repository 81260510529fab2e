use serde::Serialize;
use utoipa::ToSchema;

/// The ticket of a deletion.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = DeletionTicket)]
pub(super) struct TicketResponse {
    /// 64 hexadecimal digits.
    pub(super) ticket: String,
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
