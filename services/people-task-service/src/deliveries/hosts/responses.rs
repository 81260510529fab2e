use serde::Serialize;
use utoipa::ToSchema;
use values::Timestamp;

use crate::deliveries::hosts::store::HostRow;

/// A host with deliveries.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = DeliveryHost)]
pub(crate) struct HostResponse {
    /// The host of the webhooks' URLs, without scheme and port.
    #[schema(example = "engine.example.com")]
    pub(super) host: String,
    /// Since when its deliveries are paused; null if they are not.
    #[schema(value_type = Option<String>, format = DateTime, required = true)]
    paused: Option<Timestamp>,
    /// How many deliveries are pending, counted up to 1,000.
    #[schema(example = 12)]
    pending: i64,
    /// How many of them had failed attempts.
    #[schema(example = 3)]
    retrying: i64,
    /// How many deliveries have failed and were not sent again, counted up to 1,000.
    #[schema(example = 7)]
    failed: i64,
    /// When the next attempt of a pending delivery is due; null if there is none.
    #[schema(value_type = Option<String>, format = DateTime, required = true)]
    next_attempt: Option<Timestamp>,
}

impl From<HostRow> for HostResponse {
    fn from(row: HostRow) -> Self {
        Self {
            host: row.host,
            paused: row.paused.map(Timestamp),
            pending: row.pending,
            retrying: row.retrying,
            failed: row.failed,
            next_attempt: row.next_attempt.map(Timestamp),
        }
    }
}
