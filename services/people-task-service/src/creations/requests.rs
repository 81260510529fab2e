use http_kit::{Fields, Problem};
use utoipa::ToSchema;

use crate::tasks::NewTaskFields;
use crate::webhooks::register::MAX_PER_TASK;
use crate::webhooks::requests::NewWebhookFields;

/// A new task.
#[derive(Debug, ToSchema)]
#[schema(as = CreateTaskRequest)]
pub(super) struct NewTaskRequest {
    #[serde(flatten)]
    pub(super) task: NewTaskFields,
    /// Webhooks to register with the task, as `POST /people-task/webhooks` does. The response then has `webhooks`, too.
    #[schema(max_items = 20, nullable = false)]
    pub(super) webhooks: Option<Vec<NewWebhookFields>>,
}

impl NewTaskRequest {
    /// Parses a body. It has at most as many webhooks as a task may have.
    pub(super) fn parse(mut fields: Fields) -> Result<Self, Problem> {
        let task = NewTaskFields::read(&mut fields);
        let max = usize::try_from(MAX_PER_TASK).unwrap_or_default();
        let webhooks = fields.objects("webhooks", max, NewWebhookFields::read);
        fields.finish_with(task.map(|task| Self { task, webhooks }))
    }
}
