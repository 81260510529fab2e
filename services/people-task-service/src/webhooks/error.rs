use actix_web::http::StatusCode;
use http_kit::Problem;
use service_http::database_problem;
use values::Invalid;

use crate::tasks;

/// Why something could not be done with a webhook.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    /// There is none, or the caller may not know of it.
    #[error("there is no such webhook")]
    NotFound,
    /// The caller may read the task and not do this.
    #[error("the caller may not do this to the webhook")]
    Forbidden,
    /// The url's host is not public, and the operator has not allowed its network.
    #[error("the webhook's address is not allowed")]
    AddressRefused,
    /// The task has as many as it can have.
    #[error("the task has too many webhooks")]
    TooMany,
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

/// `400` for a url that leads to where webhooks may not go. It names no address: what a host name
/// resolves to inside our network is not the caller's business.
pub(crate) fn refused_address() -> Problem {
    let message = "Must lead to a public address. This one is, or resolves to, a loopback, private or \
         otherwise non-public address that WEBHOOK_ALLOWED_NETWORKS does not allow.";
    Problem::invalid_field("url", Invalid::new("address-not-allowed", message))
}

impl From<Error> for Problem {
    fn from(error: Error) -> Self {
        match error {
            Error::NotFound => Self::not_found("webhook"),
            Error::Forbidden => Self::forbidden(
                "Only who registered the webhook, the task's creator and administrators may delete it.",
            ),
            Error::AddressRefused => refused_address(),
            Error::TooMany => Self::new(
                StatusCode::CONFLICT,
                "too-many-webhooks",
                "The task has 20 webhooks, which is the most. Delete one first.",
            ),
            Error::Task(error) => error.into(),
            Error::Database(error) => database_problem(error),
        }
    }
}
