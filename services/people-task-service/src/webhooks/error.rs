use actix_web::http::StatusCode;
use database::database_problem;
use http_kit::{BodyProblems, Problem, problem_responses};
use values::Invalid;

use crate::quotas::{QuotaError, QuotaExceeded};
use crate::tasks::TaskError;
use crate::tasks::error::AlreadyResolved;

/// Why an operation on webhooks failed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum WebhookError {
    /// The webhook does not exist, or the caller may not know of it.
    #[error("the webhook does not exist")]
    NotFound,
    /// The caller may read the task, but may not delete the webhook.
    #[error("the caller may not delete the webhook")]
    Forbidden,
    /// The URL's host is not public, and the operator has not allowed its network.
    #[error("the webhook's address is not allowed")]
    AddressRefused,
    #[error("the task has the maximum number of webhooks")]
    TooMany,
    #[error(transparent)]
    Quota(#[from] QuotaError),
    #[error(transparent)]
    Task(#[from] TaskError),
    #[error(transparent)]
    Database(#[from] database::Error),
}

impl From<WebhookError> for Problem {
    fn from(error: WebhookError) -> Self {
        match error {
            WebhookError::NotFound => Self::not_found("webhook"),
            WebhookError::Forbidden => Self::forbidden(
                "Only the user who registered the webhook, the task's creator and administrators may delete it.",
            ),
            WebhookError::AddressRefused => address_refused(),
            WebhookError::TooMany => Self::new(
                StatusCode::CONFLICT,
                "too-many-webhooks",
                "The task already has 20 webhooks, the maximum. Delete one first.",
            ),
            WebhookError::Quota(error) => error.into(),
            WebhookError::Task(error) => error.into(),
            WebhookError::Database(error) => database_problem(error),
        }
    }
}

/// It names no address: callers must not learn what a host name resolves to inside the operator's network.
fn address_refused() -> Problem {
    let message = "Must lead to a public address. This one is, or resolves to, a loopback, private or \
         otherwise non-public address that WEBHOOK_ALLOWED_NETWORKS does not allow.";
    Problem::invalid_field("url", Invalid::new("address-not-allowed", message))
}

problem_responses! {
    /// Problems of a registration's body.
    pub(crate) InvalidWebhook: BodyProblems {
        WebhookError::AddressRefused => "The URL's host is not allowed.",
    }
    /// Problems of operations on one webhook.
    pub(crate) NoWebhook {
        WebhookError::NotFound => "The webhook does not exist or is not visible to the caller.",
    }
    /// Problems of registrations for a task that accepts none.
    pub(crate) NoMoreWebhooks: AlreadyResolved, QuotaExceeded {
        WebhookError::TooMany => "The task already has 20 webhooks.",
    }
}
