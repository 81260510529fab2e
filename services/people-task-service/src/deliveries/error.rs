use http_kit::Problem;
use service_http::database_problem;

use crate::tasks;

/// Why something could not be done with a delivery.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    /// There is none, or the caller may not know of it.
    #[error("there is no such delivery")]
    NotFound,
    /// Something about its task.
    #[error(transparent)]
    Task(#[from] tasks::Error),
    /// The database failed.
    #[error(transparent)]
    Database(#[from] database::Error),
}

impl From<diesel::result::Error> for Error {
    fn from(error: diesel::result::Error) -> Self {
        Self::Database(error.into())
    }
}

impl From<Error> for Problem {
    fn from(error: Error) -> Self {
        match error {
            Error::NotFound => Self::not_found("delivery"),
            Error::Task(error) => error.into(),
            Error::Database(error) => database_problem(error),
        }
    }
}
