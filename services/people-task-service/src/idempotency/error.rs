use std::time::Duration;

use actix_web::http::StatusCode;
use http_kit::{Problem, problem_responses};

use crate::idempotency::Operation;

/// How long callers wait before they ask again for an answer that is being made.
const WAIT: Duration = Duration::from_secs(1);

/// Why a request with an idempotency key is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum RepeatError {
    /// The user has sent another body with this key.
    #[error("the idempotency key was used for another request")]
    Reused,
    /// Another request with this key is under way, or this replica cannot make the answer.
    #[error("the idempotency key is in use")]
    InUse,
}

impl RepeatError {
    /// Counts it.
    pub(crate) fn count(self, operation: Operation) {
        let outcome = match self {
            Self::Reused => "reused",
            Self::InUse => "in-use",
        };
        super::count(operation, outcome);
    }
}

impl From<RepeatError> for Problem {
    fn from(error: RepeatError) -> Self {
        match error {
            RepeatError::Reused => Self::new(
                StatusCode::UNPROCESSABLE_ENTITY,
                "idempotency-key-reused",
                "You have used this Idempotency-Key for a request with another body within the last 24 hours. Use a key \
                 for one request and its repeats only.",
            ),
            RepeatError::InUse => Self::new(
                StatusCode::CONFLICT,
                "idempotency-key-in-use",
                "A request with this Idempotency-Key is being processed. Repeat it after `Retry-After`.",
            )
            .retry_after(WAIT),
        }
    }
}

problem_responses! {
    /// Problems of requests that may be repeated.
    pub(crate) Repeated {
        RepeatError::Reused => "The key was used for another body.",
        RepeatError::InUse => "A request with the same key is being processed.",
    }
}
