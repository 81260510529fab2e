use serde::Serialize;
use utoipa::ToSchema;
use values::{TaskId, WebhookId};

use crate::status::DeliveryStatus;
use crate::webhooks::store::Webhook;

/// A URL that is called when its task is decided, or when its due date passes.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct WebhookResponse {
    /// The webhook's identifier.
    #[schema(value_type = String, example = "665f1c2ab3d4e5f60718293b")]
    id: WebhookId,
    /// The same as `id`; only under `/plugins/appmixer/utils/tasks`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, nullable = false)]
    webhook_id: Option<WebhookId>,
    /// The URL that is called, as given. In a list, only the task's creator, the user who registered the webhook and
    /// administrators see all of it; others see the scheme and the host.
    #[schema(example = "https://engine.example.com/flows/1?correlationId=42")]
    url: String,
    /// The task's id.
    #[schema(value_type = String, example = "665f1c2ab3d4e5f60718293a")]
    task_id: TaskId,
    /// `pending` until it is delivered, then `sent`; `fail` if it was given up. It is about the newest event: after `due`
    /// was sent, it is `pending` again from the decision until that is delivered.
    status: DeliveryStatus,
}

impl WebhookResponse {
    pub(crate) fn new(webhook: Webhook, with_webhook_id: bool) -> Self {
        Self {
            id: webhook.id,
            webhook_id: with_webhook_id.then_some(webhook.id),
            url: webhook.url,
            task_id: webhook.task_id,
            status: webhook.status,
        }
    }
}
