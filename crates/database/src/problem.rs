use http_kit::Problem;

use crate::Error;

/// Maps a failure of the database to a response, and logs its cause unless that is an outage, which the pool logs.
///
/// `503 overloaded` when the database is busy or ended the statement, `503 database-unavailable` when it
/// cannot be reached or does not accept changes, and an opaque `500` for anything else.
impl From<Error> for Problem {
    fn from(error: Error) -> Self {
        match error {
            Error::Busy => overloaded(),
            Error::Contended(source) => {
                tracing::warn!(error = ?source, "the database ended a statement");
                overloaded()
            }
            Error::Unavailable(source) => {
                tracing::debug!(error = ?source, "the database is unavailable");
                unavailable()
            }
            Error::Statement(_) | Error::Pooled(_) | Error::Panicked => Self::internal(&error),
        }
    }
}

fn overloaded() -> Problem {
    let detail = "The service is overloaded. Try again shortly.";
    Problem::unavailable("overloaded", detail)
}

fn unavailable() -> Problem {
    let detail = "The database is unavailable. Try again shortly.";
    Problem::unavailable("database-unavailable", detail)
}

http_kit::problem_responses! {
    /// Problems of operations that use the database.
    pub DatabaseProblems {
        overloaded(),
        unavailable(),
    }
}
