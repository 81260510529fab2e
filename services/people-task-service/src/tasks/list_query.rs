use listing::{ANY_TEXT, Conditions, Filter, ListQuery, text_parameter};
use utoipa::IntoParams;
use utoipa::openapi::path::{Parameter, ParameterIn};
use values::{FromText as _, Invalid};

use crate::status::TaskStatus;

values::names! {
    /// The tasks that a list has, by the caller's role in them.
    pub(crate) enum Role {
        Creator = "creator",
        /// Tasks that the user decides, or decided.
        Approver = "approver",
        Requester = "requester",
        /// All tasks; for administrators.
        Any = "any",
    }
}

impl IntoParams for Role {
    fn into_params(_: impl Fn() -> Option<ParameterIn>) -> Vec<Parameter> {
        let description = "Only the tasks of one of the user's roles: `creator`, `approver` or `requester`. \
                           Administrators may list all tasks with `any`.";
        let pattern = "^(creator|approver|requester|any)?$";
        vec![text_parameter("role", description, pattern)]
    }
}

values::names! {
    pub(crate) enum TaskSort {
        Created = "created",
        DecisionBy = "decisionBy",
        Title = "title",
        Status = "status",
        Mtime = "mtime",
        Approver = "approver",
        Requester = "requester",
        DecisionMade = "decisionMade",
    }

    pub(crate) enum TaskFilter {
        Status = "status",
        Approver = "approver",
        Requester = "requester",
        Title = "title",
        Public = "public",
        Text = "text",
    }
}

impl Filter for TaskFilter {
    fn pattern(self) -> &'static str {
        match self {
            Self::Status => "(pending|approved|rejected|cancelled)",
            Self::Public => "(true|false)",
            Self::Approver | Self::Requester | Self::Title | Self::Text => ANY_TEXT,
        }
    }

    fn check(self, value: &str) -> Result<(), Invalid> {
        match self {
            Self::Status => TaskStatus::from_text(value).map(|_| ()),
            Self::Public if !["true", "false"].contains(&value) => {
                Err(Invalid::new("invalid-type", "Must be true or false."))
            }
            _ => Ok(()),
        }
    }
}

pub(crate) type TaskConditions = Conditions<TaskFilter>;

pub(crate) type TaskListQuery = ListQuery<TaskSort, TaskFilter>;

/// The highest offset in an order other than `created`, unless few tasks match.
pub(crate) const MAX_SORTED_OFFSET: i64 = 10_000;
/// So many tasks are sorted for any offset.
pub(crate) const MAX_SORTED_TASKS: i64 = 100_000;
