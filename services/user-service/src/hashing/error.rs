use bcrypt::BcryptError;
use http_kit::Problem;
use service_http::DatabaseProblems;

/// Why a password was not hashed or checked.
#[derive(Debug, thiserror::Error)]
pub(crate) enum HashError {
    /// The queue is full.
    #[error("too many passwords are waiting to be hashed")]
    Busy,
    /// bcrypt failed, which it does not for a valid hash and cost.
    #[error("bcrypt failed")]
    Failed(#[from] BcryptError),
    /// The hashing thread panicked or ended.
    #[error("a hashing thread ended")]
    Ended,
}

impl From<HashError> for Problem {
    fn from(error: HashError) -> Self {
        match error {
            HashError::Busy => Self::unavailable(
                "overloaded",
                "Too many passwords are being checked. Try again shortly.",
            ),
            HashError::Failed(_) | HashError::Ended => Self::internal(&error),
        }
    }
}

http_kit::problem_responses! {
    /// Problems of operations that hash passwords and use the database.
    pub(crate) HashProblems: DatabaseProblems {
        HashError::Busy,
    }
}
