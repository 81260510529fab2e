use std::time::Duration;

use actix_web::http::StatusCode;
use http_kit::Problem;

/// There were too many failures in a row. The next attempt succeeds after this time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("too many failures in a row")]
pub(crate) struct TooManyAttempts(pub(crate) Duration);

impl From<TooManyAttempts> for Problem {
    fn from(TooManyAttempts(wait): TooManyAttempts) -> Self {
        Self::new(
            StatusCode::TOO_MANY_REQUESTS,
            "too-many-attempts",
            "Too many failed attempts in a row. Wait as long as `Retry-After` says, then try again.",
        )
        .retry_after(wait)
    }
}

http_kit::problem_responses! {
    /// Problems of operations that check a password.
    pub(crate) BackOffProblems {
        TooManyAttempts(Duration::from_secs(8)),
    }
}
