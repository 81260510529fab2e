use serde::Serialize;
use utoipa::ToSchema;

use crate::decisions::store::WebhookCounts;

/// Who hears of it when a task is withdrawn.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct CancelPreview {
    /// How many of its webhooks are called: those whose `events` have `cancelled`.
    #[schema(minimum = 0)]
    webhooks_told: i64,
    /// How many hear nothing, so that flows which wait for them wait for ever.
    #[schema(minimum = 0)]
    webhooks_not_told: i64,
}

impl From<WebhookCounts> for CancelPreview {
    fn from(counts: WebhookCounts) -> Self {
        Self {
            webhooks_told: counts.told,
            webhooks_not_told: counts.not_told,
        }
    }
}
