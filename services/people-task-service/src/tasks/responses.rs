#![allow(
    unused_qualifications,
    reason = "utoipa's derive writes them for inlined types"
)]

use actix_web::body::BoxBody;
use actix_web::http::header::ETAG;
use actix_web::{HttpRequest, HttpResponse, Responder};
use chrono::{DateTime, Utc};
use serde::Serialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value};
use serde_with::skip_serializing_none;
use utoipa::openapi::{RefOr, Schema};
use utoipa::{PartialSchema, ToSchema};
use values::{Names as _, Secret, TaskId, Timestamp, UntrustedJson};

use crate::status::{Deciders, TaskStatus, WebhookEvent};
use crate::tasks::access::{DecidedVia, Permission, Relations};
use crate::tasks::metadata::Metadata;
use crate::tasks::projection::{FieldSelection, TaskField};
use crate::tasks::requests::DecisionBy;
use crate::tasks::store::Task;

/// A task. It always has the seven default fields. The others are there when the operation adds them or
/// `include` names them.
#[skip_serializing_none]
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct TaskResponse {
    /// The task's identifier: 24 lower-case hexadecimal digits.
    #[schema(value_type = String, required = true, example = "665f1c2ab3d4e5f60718293a")]
    id: Option<TaskId>,
    /// The same as `id`; only under `/plugins/appmixer/utils/tasks`.
    #[schema(value_type = Option<String>, nullable = false)]
    task_id: Option<TaskId>,
    /// E-mail address of the person who decides.
    #[schema(value_type = String, required = true, example = "grace@example.com")]
    approver: Option<String>,
    /// E-mail address of the person who needs the decision.
    #[schema(value_type = String, required = true, example = "ada@example.com")]
    requester: Option<String>,
    /// What the approver decides about.
    #[schema(value_type = String, required = true, example = "Buy a second printer")]
    title: Option<String>,
    /// The details.
    #[schema(value_type = String, required = true, example = "The first one jams.")]
    description: Option<String>,
    /// The date by which a decision is needed, `YYYY-MM-DD HH:MM:SS` in UTC; null if there is none.
    #[schema(value_type = Option<String>, required = true, example = "2026-12-31 17:00:00")]
    decision_by: Option<Option<String>>,
    /// Whether and how the task was decided, or whether it was withdrawn.
    #[schema(value_type = TaskStatus, required = true)]
    status: Option<&'static str>,
    /// Whether every signed-in user may read the task. Present at creation, or with `include`.
    #[schema(nullable = false)]
    public: Option<bool>,
    /// Gives the approver access to the task without a token. Present at creation, and when the creator or an
    /// administrator replaced the approver.
    #[schema(nullable = false, min_length = 64, max_length = 64)]
    approver_secret: Option<String>,
    /// Gives the requester access to the task without a token. Present at creation, and when the creator or an
    /// administrator replaced the requester.
    #[schema(nullable = false, min_length = 64, max_length = 64)]
    requester_secret: Option<String>,
    /// When the task was created. Present with `include`.
    #[schema(value_type = Option<String>, format = DateTime, nullable = false)]
    created: Option<Timestamp>,
    /// When the task last changed. Present with `include`.
    #[schema(value_type = Option<String>, format = DateTime, nullable = false)]
    mtime: Option<Timestamp>,
    /// When the task was decided or withdrawn; null before. Present with `include`.
    #[schema(value_type = Option<String>, format = DateTime)]
    decision_made: Option<Option<Timestamp>>,
    /// Whether the caller is the approver, by e-mail address or by the approver's secret. Present with `include`.
    #[schema(nullable = false)]
    is_approver: Option<bool>,
    /// Whether the caller is the requester, by e-mail address or by the requester's secret. Present with `include`.
    #[schema(nullable = false)]
    is_requester: Option<bool>,
    /// Whether the caller may decide the task while it is pending. Present with `include`.
    #[schema(nullable = false)]
    can_decide: Option<bool>,
    /// E-mail address of the person who decided or withdrew the task: the signed-in user's, or that of the person whose
    /// secret was used. Null before, for an address that was not confirmed, and for decisions of early versions. Present with `include`.
    #[schema(value_type = Option<String>, example = "grace@example.com")]
    decided_by: Option<Option<String>>,
    /// What that person wrote about it; null if nothing. Present with `include`. The body of a webhook call
    /// has it if it is not null.
    #[schema(value_type = Option<String>, example = "Too expensive.")]
    comment: Option<Option<String>>,
    /// Whether a rejection needs a comment. Present with `include`.
    #[schema(nullable = false)]
    comment_required: Option<bool>,
    /// Whether the page asks for a second press before it sends a decision. Present with `include`.
    #[schema(nullable = false)]
    confirmation_required: Option<bool>,
    /// Who decides the task: null if also its creator and administrators. Present with `include`.
    deciders: Option<Option<Deciders>>,
    /// Whether who created or requested the task may decide it. Present with `include`.
    #[schema(nullable = false)]
    self_approval: Option<bool>,
    /// How the task was decided; null before, and for decisions of early versions. Present with `include`.
    #[schema(value_type = Option<DecidedVia>)]
    decided_via: Option<Option<Value>>,
    /// What the task's creator keeps with it; null if nothing. Present with `include`, for the creator and administrators.
    #[schema(inline, value_type = Option<Metadata>)]
    metadata: Option<Option<Box<RawValue>>>,
    /// Counts the changes of what is decided on: `title`, `description`, `decisionBy`, `approver` and `requester`. It begins
    /// at 1, and `ETag` has the same number. Present with `include`.
    #[schema(nullable = false, minimum = 1, example = 1)]
    version: Option<i64>,
    #[serde(skip)]
    etag: i64,
}

/// The status of the task in a call that tries a webhook: no receiver takes it for a decision.
const TEST_STATUS: &str = "test";

/// What a webhook is called for.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Occasion {
    Decision,
    /// This due date has passed. The task is shown as undecided, which it was at that moment.
    Due(DateTime<Utc>),
    /// A user tries the webhook.
    Test,
}

/// The response about one task names its version in `ETag` (RFC 9110 section 8.8.3).
impl Responder for TaskResponse {
    type Body = BoxBody;

    fn respond_to(self, _: &HttpRequest) -> HttpResponse {
        HttpResponse::Ok()
            .insert_header((ETAG, etag(self.etag)))
            .json(self)
    }
}

pub(crate) fn etag(version: i64) -> String {
    format!("\"{version}\"")
}

/// A row of a list, as the OpenAPI document describes it: `projection` may leave any field out.
pub(crate) struct ListedTaskResponse;

impl PartialSchema for ListedTaskResponse {
    fn schema() -> RefOr<Schema> {
        let mut schema = TaskResponse::schema();
        if let RefOr::T(Schema::Object(task)) = &mut schema {
            task.required.clear();
            task.description =
                Some("A task without the fields that `projection` left out.".to_owned());
        }
        schema
    }
}

impl ToSchema for ListedTaskResponse {
    fn schemas(schemas: &mut Vec<(String, RefOr<Schema>)>) {
        TaskResponse::schemas(schemas);
    }
}

impl TaskResponse {
    pub(crate) fn new(task: Task, relations: Relations, selection: &FieldSelection) -> Self {
        let has = |field| selection.contains(field);
        let object = |json| RawValue::from_string(json).ok();
        Self {
            id: has(TaskField::Id).then_some(task.id),
            task_id: selection.is_plugin.then_some(task.id),
            approver: has(TaskField::Approver).then_some(task.approver),
            requester: has(TaskField::Requester).then_some(task.requester),
            title: has(TaskField::Title).then_some(task.title),
            description: has(TaskField::Description).then_some(task.description),
            decision_by: has(TaskField::DecisionBy)
                .then(|| task.decision_by.map(DecisionBy::format)),
            status: has(TaskField::Status).then_some(task.status.name()),
            public: has(TaskField::Public).then_some(task.public),
            approver_secret: None,
            requester_secret: None,
            created: has(TaskField::Created).then_some(Timestamp(task.created)),
            mtime: has(TaskField::Mtime).then_some(Timestamp(task.mtime)),
            decision_made: has(TaskField::DecisionMade).then(|| task.decision_made.map(Timestamp)),
            is_approver: has(TaskField::IsApprover).then_some(relations.approver),
            is_requester: has(TaskField::IsRequester).then_some(relations.requester),
            can_decide: has(TaskField::CanDecide).then(|| relations.allow(Permission::Decide)),
            decided_by: has(TaskField::DecidedBy).then_some(task.decided_by),
            comment: has(TaskField::Comment).then_some(task.comment),
            comment_required: has(TaskField::CommentRequired).then_some(task.comment_required),
            confirmation_required: has(TaskField::ConfirmationRequired)
                .then_some(task.confirmation_required),
            deciders: has(TaskField::Deciders).then_some(task.deciders),
            self_approval: has(TaskField::SelfApproval).then_some(task.self_approval),
            decided_via: has(TaskField::DecidedVia).then_some(task.decided_via),
            metadata: (has(TaskField::Metadata) && relations.allow(Permission::Metadata))
                .then(|| task.metadata.and_then(object)),
            version: has(TaskField::Version).then_some(task.content_version),
            etag: task.content_version,
        }
    }

    /// The body of a webhook call: the task with the default fields and those that the webhook includes, and with
    /// `comment` if there is one. If the webhook was registered on an Appmixer plugin path, it also has `taskId` and the
    /// times of the task. `registrant` is how the user who registered the webhook is related to the task.
    pub(crate) fn for_webhook(
        mut task: Task,
        is_plugin: bool,
        occasion: Occasion,
        registrant: Relations,
        included: impl Iterator<Item = TaskField>,
    ) -> Self {
        if let Occasion::Due(date) = occasion {
            task.decision_by = Some(date);
            task.decision_made = None;
            task.decided_by = None;
            task.decided_via = None;
            task.comment = None;
        }
        let times = [
            TaskField::DecisionMade,
            TaskField::Created,
            TaskField::Mtime,
        ];
        let added = times.into_iter().filter(|_| is_plugin).chain(included);
        let added = added.chain(task.comment.as_ref().map(|_| TaskField::Comment));
        let selection = added.fold(FieldSelection::new(is_plugin), FieldSelection::with);
        let mut body = Self::new(task, registrant, &selection);
        match occasion {
            Occasion::Decision => {}
            Occasion::Due(_) => body.status = Some(WebhookEvent::Due.name()),
            Occasion::Test => body.status = Some(TEST_STATUS),
        }
        body
    }

    /// The values of all fields that the body of a webhook call can have, for a template.
    pub(crate) fn values_for_webhook(
        task: Task,
        occasion: Occasion,
        registrant: Relations,
    ) -> Result<Map<String, Value>, serde_json::Error> {
        let all = TaskField::of_webhooks();
        let values = Self::for_webhook(task, false, occasion, registrant, all);
        // By a text, because metadata that 0.3.0 stored may have a name that the parser reserves for itself.
        let UntrustedJson(values) = serde_json::from_str(&serde_json::to_string(&values)?)?;
        serde_json::from_value(values)
    }

    /// Adds new secrets: the approver's and the requester's.
    pub(crate) fn with_secrets(mut self, secrets: [Option<&Secret>; 2]) -> Self {
        let texts = secrets.map(|secret| Some(secret?.expose().to_owned()));
        [self.approver_secret, self.requester_secret] = texts;
        self
    }
}
