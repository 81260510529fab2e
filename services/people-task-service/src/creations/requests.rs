//! The request body of a new task.

use http_kit::{Fields, Problem};
use utoipa::openapi::schema::ArrayBuilder;
use utoipa::openapi::{RefOr, Schema};
use utoipa::{PartialSchema, ToSchema};
use values::TaskId;

use crate::tasks::requests::CreateTaskRequest;
use crate::tasks::responses::changed_schema;
use crate::webhooks::register::MAX_PER_TASK;
use crate::webhooks::requests::RegisterWebhookRequest;

#[derive(Debug)]
pub(super) struct NewTaskRequest {
    pub(super) id: TaskId,
    pub(super) task: CreateTaskRequest,
    /// At most as many as a task may have. `None` if the request has none, and the response then, too.
    pub(super) webhooks: Option<Vec<RegisterWebhookRequest>>,
}

impl NewTaskRequest {
    /// Parses the body of a request for a task that gets an identifier.
    pub(super) fn parse(mut fields: Fields) -> Result<Self, Problem> {
        let id = TaskId::generate();
        let task = CreateTaskRequest::read(&mut fields);
        let max = usize::try_from(MAX_PER_TASK).unwrap_or_default();
        let webhooks = fields.objects("webhooks", max, |webhook| {
            RegisterWebhookRequest::read(webhook, |_| Some(id))
        });
        fields.finish_with(task.map(|task| Self { id, task, webhooks }))
    }
}

/// It has the fields of the task, and `webhooks`: registrations without the task's identifier.
impl PartialSchema for NewTaskRequest {
    fn schema() -> RefOr<Schema> {
        let webhook = changed_schema::<RegisterWebhookRequest>(|webhook| {
            webhook.properties.remove("taskId");
            webhook.required.retain(|name| name != "taskId");
        });
        let description = "Webhooks to register with the task, as `POST /people-task/webhooks` does. The response then has \
                           `webhooks`, too.";
        let webhooks = ArrayBuilder::new()
            .items(webhook)
            .max_items(usize::try_from(MAX_PER_TASK).ok())
            .description(Some(description));
        changed_schema::<CreateTaskRequest>(|task| {
            task.properties
                .insert("webhooks".to_owned(), webhooks.into());
        })
    }
}

impl ToSchema for NewTaskRequest {
    fn name() -> std::borrow::Cow<'static, str> {
        CreateTaskRequest::name()
    }

    fn schemas(schemas: &mut Vec<(String, RefOr<Schema>)>) {
        CreateTaskRequest::schemas(schemas);
        RegisterWebhookRequest::schemas(schemas);
    }
}
