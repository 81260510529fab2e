use actix_web::http::StatusCode;
use http_kit::{Problem, problem_responses};
use serde_json::{Value, json};
use values::{Invalid, Names as _};

use crate::quotas::QuotaError;
use crate::status::TaskStatus;
use crate::tasks::access::{AccessDenied, Relations};
use crate::tasks::list_query::{MAX_SORTED_OFFSET, MAX_SORTED_TASKS};
use crate::tasks::projection::{FieldSelection, TaskField};
use crate::tasks::requests::Precondition;
use crate::tasks::responses::TaskResponse;
use crate::tasks::store::Task;

#[derive(Debug, thiserror::Error)]
pub(crate) enum TaskError {
    /// The task does not exist, or the caller may not know of it.
    #[error("the task does not exist")]
    NotFound,
    /// The caller may read the task but lacks another permission.
    #[error("the caller lacks a permission on the task")]
    Forbidden,
    /// A requester may name another approver, but may not decide.
    #[error("the requester may not become the approver")]
    SelfApproval,
    #[error("the caller may not list all tasks")]
    NotAdmin,
    /// The page is too far in a list of very many tasks.
    #[error("the offset is too high")]
    OffsetTooHigh,
    /// The token's user was erased, which this service has not yet learned from the revocation feed.
    #[error("the caller was erased")]
    CallerErased,
    #[error("the rejection lacks a comment")]
    CommentRequired,
    /// This field asks for what is not set up, or leaves no one to decide. The message says what it lacks.
    #[error("the task cannot be created in this way")]
    Unavailable(&'static str, &'static str),
    #[error("the task is already resolved")]
    AlreadyResolved(TaskStatus),
    /// The caller, who may read the task as it is now, has seen another version.
    #[error("the task has changed")]
    Changed(Box<Task>),
    #[error(transparent)]
    Quota(#[from] QuotaError),
    #[error(transparent)]
    Database(#[from] database::Error),
}

impl Task {
    /// Whether the task is undecided, and of a version that the caller means.
    ///
    /// # Errors
    /// [`TaskError::AlreadyResolved`], which comes first, and [`TaskError::Changed`].
    pub(crate) fn check_pending(&self, precondition: &Precondition) -> Result<(), TaskError> {
        if self.status != TaskStatus::Pending {
            Err(TaskError::AlreadyResolved(self.status))
        } else if !precondition.holds_for(self.content_version) {
            Err(TaskError::Changed(Box::new(self.clone())))
        } else {
            Ok(())
        }
    }
}

impl From<AccessDenied> for TaskError {
    fn from(denied: AccessDenied) -> Self {
        match denied {
            AccessDenied::Hidden => Self::NotFound,
            AccessDenied::Forbidden => Self::Forbidden,
        }
    }
}

impl From<TaskError> for Problem {
    fn from(error: TaskError) -> Self {
        match error {
            TaskError::NotFound => Self::not_found("task"),
            TaskError::Forbidden => Self::forbidden(
                "You can read this task, but you do not have permission to do this.",
            ),
            TaskError::CallerErased => auth::token_revoked(),
            TaskError::SelfApproval => Self::forbidden(
                "A requester cannot become the approver. Name another person, or ask the task's creator.",
            ),
            TaskError::NotAdmin => auth::insufficient_scope(auth::ADMIN_SCOPE),
            TaskError::OffsetTooHigh => {
                let message = format!(
                    "Must be at most {MAX_SORTED_OFFSET} in this order, because more than {MAX_SORTED_TASKS} tasks \
                     match. Sort by created, or narrow the list by a filter."
                );
                Self::invalid_field("offset", Invalid::new("out-of-range", message))
            }
            TaskError::CommentRequired => {
                let message = "Is required to reject this task.";
                Self::invalid_field("comment", Invalid::new("required", message))
            }
            TaskError::Unavailable(field, message) => {
                Self::invalid_field(field, Invalid::new("unavailable", message))
            }
            TaskError::AlreadyResolved(status) => already_resolved(status),
            TaskError::Changed(task) => task_changed(as_it_is_now(*task)),
            TaskError::Quota(error) => error.into(),
            TaskError::Database(error) => error.into(),
        }
    }
}

/// A task for a caller who may read it and has seen another version.
fn as_it_is_now(task: Task) -> Value {
    let selection = FieldSelection::new(false).with(TaskField::Version);
    let task = TaskResponse::new(task, Relations::default(), &selection);
    serde_json::to_value(task).unwrap_or_default()
}

fn already_resolved(status: TaskStatus) -> Problem {
    let name = status.name();
    let message = match status {
        TaskStatus::Cancelled => "The task is already cancelled. That is final.".to_owned(),
        _ => format!("The task is already {name}. A decision is final."),
    };
    let problem = Problem::new(StatusCode::CONFLICT, "task-already-resolved", message);
    problem.with("taskStatus", name)
}

fn task_changed(task: Value) -> Problem {
    Problem::new(
        StatusCode::CONFLICT,
        "task-changed",
        "The task is not the version that the request names. See `task` for what it is now, and send its `version` if \
         that is what you mean.",
    )
    .with("task", task)
}

problem_responses! {
    /// Problems of lists, which administrators may ask for all tasks.
    pub(crate) NotAdmin {
        TaskError::NotAdmin => "`role=any` is for administrators.",
    }
    /// Problems of operations that need more than read access to a task.
    pub(crate) Forbidden {
        TaskError::Forbidden => "The caller can read the task but lacks the permission for this operation.",
    }
    /// Problems of operations on one task.
    pub(crate) NoTask {
        TaskError::NotFound => "The task does not exist or is not visible to the caller.",
    }
    /// Problems of operations that change a pending task.
    pub(crate) AlreadyResolved {
        TaskError::AlreadyResolved(TaskStatus::Approved) => "The task is already resolved.",
    }
    /// Problems of operations that may name the version of the task that they apply to.
    pub(crate) Changed: AlreadyResolved {
        task_changed(json!({
            "id": "665f1c2ab3d4e5f60718293a",
            "approver": "grace@example.com",
            "requester": "ada@example.com",
            "title": "Buy three printers",
            "description": "The first one jams.",
            "decisionBy": null,
            "status": "pending",
            "version": 2,
        })) => "The task is not the version of `If-Match` or `version`.",
    }
}
