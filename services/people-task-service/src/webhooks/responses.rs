use serde::Serialize;
use serde_json::value::RawValue;
use serde_with::skip_serializing_none;
use utoipa::ToSchema;
use values::{DeliveryId, TaskId, WebhookId};

use crate::deliveries::TestResult;
use crate::status::{DeliveryStatus, WebhookEvent};
use crate::webhook_options::{BodyTemplate, CallMethod, Success, WebhookOptions};
use crate::webhooks::store::Webhook;

/// A URL that is called when its task is decided, or when its due date passes. Those who see the whole URL
/// see the fields after `status`, which except for `events` are there if the registration had them.
#[skip_serializing_none]
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct WebhookResponse {
    /// The webhook's identifier.
    #[schema(value_type = String, example = "665f1c2ab3d4e5f60718293b")]
    id: WebhookId,
    /// The same as `id`; only under `/plugins/appmixer/utils/tasks`.
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
    /// What it is called for. It is missing where that is what registrations without `events` get on the same path: the
    /// decision, under `/plugins/appmixer/utils/tasks` also `due`.
    #[schema(nullable = false)]
    events: Option<Vec<WebhookEvent>>,
    /// Fields that the body has beside the usual ones.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schema(required = false)]
    include: Vec<String>,
    /// The names of the headers, in lower case. Their values are never returned.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schema(required = false)]
    headers: Vec<String>,
    // utoipa would demand an object beside the inlined types if these had descriptions.
    #[schema(inline, nullable = false)]
    method: Option<CallMethod>,
    #[schema(inline, value_type = BodyTemplate, required = false)]
    body: Option<Box<RawValue>>,
    #[schema(inline, nullable = false)]
    success: Option<Success>,
}

impl WebhookResponse {
    pub(crate) fn new(webhook: Webhook, with_webhook_id: bool) -> Self {
        let options = webhook.options.as_deref();
        // What a later version wrote is not shown.
        let options = options.and_then(WebhookOptions::parse).unwrap_or_default();
        let headers = options.headers.map(|headers| headers.names);
        Self {
            id: webhook.id,
            webhook_id: with_webhook_id.then_some(webhook.id),
            url: webhook.url,
            task_id: webhook.task_id,
            status: webhook.status,
            events: webhook.events,
            include: options.include,
            headers: headers.unwrap_or_default(),
            method: options.method,
            body: options.body,
            success: options.success,
        }
    }
}

/// What came of a call that tried a webhook.
#[derive(Serialize, ToSchema)]
#[schema(as = WebhookTest)]
pub(crate) struct WebhookTestResponse {
    /// The `webhook-id` of the call.
    #[schema(value_type = String, example = "665f1c2ab3d4e5f60718293c")]
    pub(crate) id: DeliveryId,
    #[serde(flatten)]
    pub(crate) result: TestResult,
}
