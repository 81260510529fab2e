use actix_web::http::StatusCode;
use http_kit::Problem;
use service_http::database_problem;

use crate::status::TaskStatus;
use crate::tasks::access::Denied;

/// Why something could not be done to a task.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    /// There is none, or the caller may not know of it.
    #[error("there is no such task")]
    NotFound,
    /// The caller may read the task and not do this.
    #[error("the caller may not do this to the task")]
    Forbidden,
    /// Only administrators list everybody's tasks.
    #[error("the caller may not list all tasks")]
    NotAdmin,
    /// It was decided before.
    #[error("the task is already resolved")]
    AlreadyResolved(TaskStatus),
    /// The database failed.
    #[error(transparent)]
    Database(#[from] database::Error),
}

impl From<diesel::result::Error> for Error {
    fn from(error: diesel::result::Error) -> Self {
        Self::Database(error.into())
    }
}

impl From<Denied> for Error {
    fn from(denied: Denied) -> Self {
        match denied {
            Denied::Hidden => Self::NotFound,
            Denied::Forbidden => Self::Forbidden,
        }
    }
}

impl From<Error> for Problem {
    fn from(error: Error) -> Self {
        match error {
            Error::NotFound => Self::not_found("task"),
            Error::Forbidden => Self::forbidden(
                "You may read this task, but not do this: only those who are concerned may.",
            ),
            Error::NotAdmin => auth::insufficient_scope(auth::ADMIN_SCOPE),
            Error::AlreadyResolved(status) => Self::new(
                StatusCode::CONFLICT,
                "task-already-resolved",
                format!(
                    "The task is {} already; a decision is final.",
                    status.as_str()
                ),
            )
            .with("taskStatus", status.as_str()),
            Error::Database(error) => database_problem(error),
        }
    }
}
