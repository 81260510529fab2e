//! What a list of tasks can be asked for.

use listing::{ANY_TEXT, Conditions, Filter, ListQuery, Names};
use utoipa::IntoParams;
use utoipa::openapi::Required;
use utoipa::openapi::path::{Parameter, ParameterBuilder, ParameterIn};
use utoipa::openapi::schema::{ObjectBuilder, Type};
use values::{FromText, Invalid};

use crate::status::TaskStatus;

/// Whose tasks a list has, by the role that the caller plays in them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Role {
    /// Tasks that the user created.
    Creator,
    /// Tasks that the user decides, or decided.
    Approver,
    /// Tasks that the user requested.
    Requester,
    /// All tasks; for administrators.
    Any,
}

impl IntoParams for Role {
    fn into_params(_: impl Fn() -> Option<ParameterIn>) -> Vec<Parameter> {
        let schema = ObjectBuilder::new().schema_type(Type::String);
        let parameter = ParameterBuilder::new()
            .name("role")
            .parameter_in(ParameterIn::Query)
            .required(Required::False)
            .description(Some(
                "Only the tasks of one of the user's roles: `creator`, `approver` or `requester`. Administrators \
                 may list all tasks with `any`.",
            ))
            .schema(Some(
                schema.pattern(Some("^(creator|approver|requester|any)?$")),
            ));
        vec![parameter.build()]
    }
}

impl FromText for Role {
    fn from_text(text: &str) -> Result<Self, Invalid> {
        match text {
            "creator" => Ok(Self::Creator),
            "approver" => Ok(Self::Approver),
            "requester" => Ok(Self::Requester),
            "any" => Ok(Self::Any),
            _ => Err(Invalid::new(
                "unknown-value",
                "Must be one of creator, approver, requester and, for administrators, any.",
            )),
        }
    }
}

/// What tasks can be sorted by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TaskSort {
    Created,
    DecisionBy,
    Title,
    Status,
    Mtime,
}

impl Names for TaskSort {
    const ALL: &'static [Self] = &[
        Self::Created,
        Self::DecisionBy,
        Self::Title,
        Self::Status,
        Self::Mtime,
    ];

    fn name(self) -> &'static str {
        match self {
            Self::Created => "created",
            Self::DecisionBy => "decisionBy",
            Self::Title => "title",
            Self::Status => "status",
            Self::Mtime => "mtime",
        }
    }
}

/// What tasks can be filtered by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TaskFilter {
    Status,
    Approver,
    Requester,
    Title,
    Public,
}

impl Names for TaskFilter {
    const ALL: &'static [Self] = &[
        Self::Status,
        Self::Approver,
        Self::Requester,
        Self::Title,
        Self::Public,
    ];

    fn name(self) -> &'static str {
        match self {
            Self::Status => "status",
            Self::Approver => "approver",
            Self::Requester => "requester",
            Self::Title => "title",
            Self::Public => "public",
        }
    }
}

impl Filter for TaskFilter {
    fn pattern(self) -> &'static str {
        match self {
            Self::Status => "(pending|approved|rejected)",
            Self::Public => "(true|false)",
            Self::Approver | Self::Requester | Self::Title => ANY_TEXT,
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

/// Which tasks count.
#[derive(Debug)]
pub(crate) struct TaskSelection {
    pub(crate) role: Option<Role>,
    pub(crate) conditions: TaskConditions,
}

/// Filters and pattern.
pub(crate) type TaskConditions = Conditions<TaskFilter>;

/// Sort, conditions and paging of a list.
pub(crate) type TaskListQuery = ListQuery<TaskSort, TaskFilter>;
