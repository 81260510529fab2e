use std::time::Duration;

use actix_web::http::StatusCode;
use bcrypt::BcryptError;
use database::DatabaseProblems;
use fairness::Refused;
use http_kit::Problem;

/// After this time, some of the waiting passwords have been checked.
const SHARE_RETRY: Duration = Duration::from_secs(2);

#[derive(Debug, thiserror::Error)]
pub(crate) enum HashError {
    /// The queue is full, of passwords of this client network or of many.
    #[error("too many passwords are waiting to be hashed")]
    Refused(#[from] Refused),
    /// bcrypt failed, which it does not for a valid hash and cost.
    #[error("bcrypt failed")]
    Failed(#[from] BcryptError),
    #[error("a hashing thread ended")]
    Ended,
}

impl From<HashError> for Problem {
    fn from(error: HashError) -> Self {
        match error {
            HashError::Refused(Refused::Full) => Self::unavailable(
                "overloaded",
                "Too many passwords are being checked. Try again shortly.",
            ),
            // Not 503: the system works, and other clients are served.
            HashError::Refused(Refused::ShareUsed) => Self::new(
                StatusCode::TOO_MANY_REQUESTS,
                "rate-limited",
                "Too many passwords from your address are being checked at once. Try again shortly.",
            )
            .retry_after(SHARE_RETRY),
            HashError::Failed(_) | HashError::Ended => Self::internal(&error),
        }
    }
}

http_kit::problem_responses! {
    pub(crate) HashProblems: DatabaseProblems {
        HashError::Refused(Refused::Full),
        HashError::Refused(Refused::ShareUsed) => "Too many passwords from the client's address are being checked at once.",
    }
}
