use http_kit::{FieldError, Problem};

use crate::idempotency::RepeatError;
use crate::tasks::TaskError;
use crate::webhooks::error::WebhookError;

#[derive(Debug, thiserror::Error)]
pub(crate) enum CreationError {
    /// Webhooks that are refused, by their places in the request.
    #[error("a webhook is refused")]
    Webhooks(Vec<(usize, WebhookError)>),
    #[error(transparent)]
    Repeat(#[from] RepeatError),
    #[error(transparent)]
    Task(#[from] TaskError),
    #[error(transparent)]
    Database(#[from] database::Error),
}

impl From<CreationError> for Problem {
    fn from(error: CreationError) -> Self {
        match error {
            CreationError::Webhooks(refused) => refused_webhooks(refused),
            CreationError::Repeat(error) => error.into(),
            CreationError::Task(error) => error.into(),
            CreationError::Database(error) => error.into(),
        }
    }
}

/// The errors of the fields of all webhooks, or the first problem that is about no field.
fn refused_webhooks(refused: Vec<(usize, WebhookError)>) -> Problem {
    let mut all = Vec::new();
    for (number, error) in refused {
        let problem = Problem::from(error);
        let errors = problem.body().errors;
        if errors.is_empty() {
            return problem;
        }
        all.extend(errors.into_iter().map(|error| FieldError {
            field: format!("webhooks[{number}].{}", error.field),
            ..error
        }));
    }
    Problem::validation(all)
}
