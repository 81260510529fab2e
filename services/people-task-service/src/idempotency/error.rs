use std::time::Duration;

use actix_web::http::StatusCode;
use http_kit::{Problem, problem_responses};
use values::Names as _;

use crate::idempotency::Operation;

/// How long callers wait before they ask again for an answer that is being made.
const WAIT: Duration = Duration::from_secs(1);

values::names! {
    /// Why a request with an idempotency key is refused, with the name in metrics.
    #[derive(thiserror::Error)]
    pub(crate) enum RepeatError {
        /// The user has sent another body with this key.
        #[error("the idempotency key was used for another request")]
        Reused = "reused",
        /// Another request with this key is under way, or this replica cannot make the answer.
        #[error("the idempotency key is in use")]
        InUse = "in-use",
    }
}

impl RepeatError {
    pub(crate) fn count(self, operation: Operation) {
        super::count(operation, self.name());
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
