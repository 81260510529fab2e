use std::time::Duration;

use actix_web::http::StatusCode;
use http_kit::{BodyProblems, FieldError, Problem, problem_responses};
use values::Invalid;

use crate::idempotency::{RepeatError, Repeated};
use crate::quotas::{QuotaError, QuotaExceeded};
use crate::tasks::TaskError;
use crate::tasks::error::AlreadyResolved;

/// The limits of tests, in words.
pub(super) const TESTS_OF_USER: &str =
    "You may try 10 webhooks within a minute. Try again after `Retry-After`.";
pub(super) const TESTS_OF_ALL: &str =
    "All users together may try 60 webhooks within a minute. Try again after `Retry-After`.";

/// It names no address: callers must not learn what a host name resolves to inside the operator's network.
const ADDRESS_REFUSED: &str = "Must lead to a public address. This one is, or resolves to, a loopback, private or \
     otherwise non-public address that WEBHOOK_ALLOWED_NETWORKS does not allow.";
const NOT_AN_ENGINE: &str = "Is taken for an address that is not public only if the operator lists the origin of the URL in WEBHOOK_ENGINE_ORIGINS.";
const NOT_HTTPS: &str =
    "Go over https only, or to an origin that the operator lists in WEBHOOK_ENGINE_ORIGINS.";
const NO_HEADER_KEYS: &str =
    "Cannot be kept: the operator has not set WEBHOOK_HEADER_KEYS, the keys that encrypt them.";
const HIDES_METADATA: &str =
    "Must not have `metadata`, which only the task's creator and administrators see.";

/// Why an operation on webhooks failed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum WebhookError {
    /// The webhook does not exist, or the caller may not know of it.
    #[error("the webhook does not exist")]
    NotFound,
    /// The caller may read the task, but may not do this with the webhook: `delete` or `try` it.
    #[error("the caller may not {0} the webhook")]
    Forbidden(&'static str),
    /// The URL's host is not public, and the operator has not allowed its network.
    #[error("the webhook's address is not allowed")]
    AddressRefused,
    /// The caller shapes requests to an address that is not public, and the origin is not one of flow engines. Has the
    /// names of the fields.
    #[error("only flow engines may be called in this way")]
    NotAnEngine(Vec<&'static str>),
    /// Headers would go over http.
    #[error("headers need https")]
    NotHttps,
    /// The operator has set no key to seal headers with.
    #[error("there is no key for headers")]
    NoHeaderKeys,
    /// This field would tell the task's metadata to a user who may not see it.
    #[error("the caller may not see the metadata")]
    HidesMetadata(&'static str),
    /// Too many webhooks were tried within a minute: [`TESTS_OF_USER`] or [`TESTS_OF_ALL`], and how long to wait.
    #[error("too many webhooks were tried")]
    TooManyTests(&'static str, Duration),
    /// Deliveries to the webhook's host are paused.
    #[error("the host is paused")]
    Paused,
    /// No webhook-worker made the call, or its result is not known.
    #[error("no result in time")]
    NoResult,
    #[error("the task has the maximum number of webhooks")]
    TooMany,
    #[error(transparent)]
    Repeat(#[from] RepeatError),
    #[error(transparent)]
    Quota(#[from] QuotaError),
    #[error(transparent)]
    Task(#[from] TaskError),
    #[error(transparent)]
    Database(#[from] database::Error),
}

impl From<WebhookError> for Problem {
    fn from(error: WebhookError) -> Self {
        let invalid = |field, code, text| Self::invalid_field(field, Invalid::new(code, text));
        match error {
            WebhookError::NotFound => Self::not_found("webhook"),
            WebhookError::Forbidden(what) => Self::forbidden(format!(
                "Only the user who registered the webhook, the task's creator and administrators may {what} it.",
            )),
            WebhookError::AddressRefused => invalid("url", "address-not-allowed", ADDRESS_REFUSED),
            WebhookError::NotAnEngine(fields) => {
                let invalid = || Invalid::new("not-an-engine-origin", NOT_AN_ENGINE);
                let errors = fields.into_iter().map(|field| FieldError::new(field, invalid()));
                Self::validation(errors.collect())
            }
            WebhookError::NotHttps => invalid("headers", "https-required", NOT_HTTPS),
            WebhookError::NoHeaderKeys => invalid("headers", "setting-missing", NO_HEADER_KEYS),
            WebhookError::HidesMetadata(field) => invalid(field, "hidden-field", HIDES_METADATA),
            WebhookError::TooManyTests(limit, wait) => {
                Self::new(StatusCode::TOO_MANY_REQUESTS, "rate-limited", limit).retry_after(wait)
            }
            WebhookError::Paused => Self::new(
                StatusCode::CONFLICT,
                "deliveries-paused",
                "Deliveries to the webhook's host are paused by an administrator.",
            ),
            WebhookError::NoResult => Self::new(
                StatusCode::SERVICE_UNAVAILABLE,
                "no-test-result",
                "No result within 15 seconds: no webhook-worker runs, or the receiver takes longer. It may have got the call.",
            )
            .retry_after(Duration::from_secs(15)),
            WebhookError::TooMany => Self::new(
                StatusCode::CONFLICT,
                "too-many-webhooks",
                "The task already has 20 webhooks, the maximum. Delete one first.",
            ),
            WebhookError::Repeat(error) => error.into(),
            WebhookError::Quota(error) => error.into(),
            WebhookError::Task(error) => error.into(),
            WebhookError::Database(error) => error.into(),
        }
    }
}

problem_responses! {
    /// Problems of a registration's body.
    pub(crate) InvalidWebhook: BodyProblems {
        WebhookError::AddressRefused => "The URL's host is not allowed.",
        WebhookError::NotAnEngine(vec!["body"]) => "The address is not public, and its origin is not one of flow engines.",
        WebhookError::NoHeaderKeys => "The operator has not set what headers need.",
    }
    /// Problems of trying a webhook.
    pub(crate) NoTest {
        WebhookError::Paused => "Deliveries to the host are paused.",
        WebhookError::TooManyTests(TESTS_OF_USER, Duration::from_secs(30)) => "The user, or all together, try too many webhooks.",
        WebhookError::NoResult => "There was no result in time.",
    }
    /// Problems of operations on one webhook.
    pub(crate) NoWebhook {
        WebhookError::NotFound => "The webhook does not exist or is not visible to the caller.",
    }
    /// Problems of registrations for a task that accepts none.
    pub(crate) NoMoreWebhooks: AlreadyResolved, QuotaExceeded, Repeated {
        WebhookError::TooMany => "The task already has 20 webhooks.",
    }
}
