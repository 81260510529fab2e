use std::borrow::Cow;

use serde::Serialize;
use utoipa::openapi::{RefOr, Schema};
use utoipa::{PartialSchema, ToSchema};
use values::{Secret, TaskId, Timestamp};

use crate::status::TaskStatus;
use crate::tasks::access::Relations;
use crate::tasks::view::{Field, View};
use crate::tasks::{DecisionBy, Task};

/// A task. The seven fields of a task come always; the others when the operation adds them or `include`
/// asks for them.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = Task)]
pub(crate) struct TaskAnswer {
    /// The task's identifier: 24 lower-case hexadecimal digits.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = String, required = true, example = "665f1c2ab3d4e5f60718293a")]
    id: Option<TaskId>,
    /// The same as `id`; only under `/plugins/appmixer/utils/tasks`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, nullable = false)]
    task_id: Option<TaskId>,
    /// E-mail address of the person who decides.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = String, required = true, example = "grace@example.com")]
    approver: Option<String>,
    /// E-mail address of the person who asks for the decision.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = String, required = true, example = "ada@example.com")]
    requester: Option<String>,
    /// What is to be decided.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = String, required = true, example = "Buy a second printer")]
    title: Option<String>,
    /// The details.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = String, required = true, example = "The first one jams.")]
    description: Option<String>,
    /// Until when a decision is wanted, `YYYY-MM-DD HH:MM:SS` in UTC; null when not given.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, required = true, example = "2026-12-31 17:00:00")]
    decision_by: Option<Option<String>>,
    /// Where the task stands.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = TaskStatus, required = true)]
    status: Option<TaskStatus>,
    /// Whether every signed-in user may read the task. At creation, and by `include`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    public: Option<bool>,
    /// Opens the task to the approver without a token. At creation, and when an edit made a new one.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, min_length = 64, max_length = 64)]
    pub(crate) approver_secret: Option<String>,
    /// Opens the task to the requester without a token. At creation, and when an edit made a new one.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, min_length = 64, max_length = 64)]
    pub(crate) requester_secret: Option<String>,
    /// When the task was created. By `include`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, format = DateTime, nullable = false)]
    created: Option<Timestamp>,
    /// When the task last changed. By `include`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, format = DateTime, nullable = false)]
    mtime: Option<Timestamp>,
    /// When the task was decided; null before. By `include`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, format = DateTime)]
    decision_made: Option<Option<Timestamp>>,
    /// Whether the caller is the approver, by e-mail address or by the approver's secret. By `include`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    is_approver: Option<bool>,
}

/// A task of a list, as the OpenAPI document describes it: `projection` may leave any field out.
pub(crate) struct ListedTask;

impl PartialSchema for ListedTask {
    fn schema() -> RefOr<Schema> {
        let mut schema = TaskAnswer::schema();
        if let RefOr::T(Schema::Object(task)) = &mut schema {
            task.required.clear();
            task.description =
                Some("A task without the fields that `projection` left out.".to_owned());
        }
        schema
    }
}

impl ToSchema for ListedTask {
    fn name() -> Cow<'static, str> {
        Cow::Borrowed("ListedTask")
    }

    fn schemas(schemas: &mut Vec<(String, RefOr<Schema>)>) {
        TaskAnswer::schemas(schemas);
    }
}

impl TaskAnswer {
    /// A task as its reader wants to see it.
    pub(crate) fn new(task: Task, relations: Relations, view: &View) -> Self {
        Self {
            id: view.shows(Field::Id).then_some(task.id),
            task_id: view.with_task_id.then_some(task.id),
            approver: view.shows(Field::Approver).then_some(task.approver),
            requester: view.shows(Field::Requester).then_some(task.requester),
            title: view.shows(Field::Title).then_some(task.title),
            description: view.shows(Field::Description).then_some(task.description),
            decision_by: view
                .shows(Field::DecisionBy)
                .then(|| task.decision_by.map(DecisionBy::format)),
            status: view.shows(Field::Status).then_some(task.status),
            public: view.shows(Field::Public).then_some(task.public),
            approver_secret: None,
            requester_secret: None,
            created: view
                .shows(Field::Created)
                .then_some(Timestamp(task.created)),
            mtime: view.shows(Field::Mtime).then_some(Timestamp(task.mtime)),
            decision_made: view
                .shows(Field::DecisionMade)
                .then(|| task.decision_made.map(Timestamp)),
            is_approver: view.shows(Field::IsApprover).then_some(relations.approver),
        }
    }

    /// The body that a webhook receives: exactly the task object, and `taskId` where the webhook was
    /// registered under the newer paths.
    pub(crate) fn for_webhook(task: Task, with_task_id: bool) -> Self {
        let view = View::of_webhooks(with_task_id);
        Self::new(task, Relations::default(), &view)
    }

    /// Adds the secrets that were just made.
    pub(crate) fn with_secrets(
        mut self,
        approver: Option<&Secret>,
        requester: Option<&Secret>,
    ) -> Self {
        let text = |secret: &Secret| secret.expose().to_owned();
        self.approver_secret = approver.map(text);
        self.requester_secret = requester.map(text);
        self
    }
}
