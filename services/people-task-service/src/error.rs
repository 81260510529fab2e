use std::time::Duration;

use actix_web::http::StatusCode;
use http_kit::{BodyProblems, FieldError, Problem, problem_responses};
use serde_json::{Value, json};
use values::{Invalid, Names as _};

use crate::idempotency::{RepeatError, Repeated};
use crate::quotas::{QuotaError, QuotaExceeded};
use crate::status::TaskStatus;

/// Why a request was refused or failed. The text of a refusal is the `detail` of its problem, or the message of its field.
#[derive(Debug, thiserror::Error)]
pub(crate) enum TaskError {
    /// It does not exist, or the caller may not know of it.
    #[error("There is no such {0}.")]
    NotFound(&'static str),
    /// The caller may read the task but lacks another permission.
    #[error("You can read this task, but you do not have permission to do this.")]
    Forbidden,
    /// The caller may read the task, but may not do this with the webhook: `delete` or `try` it.
    #[error(
        "Only the user who registered the webhook, the task's creator and administrators may {0} it."
    )]
    NotManager(&'static str),
    #[error(
        "A requester cannot become the approver. Name another person, or ask the task's creator."
    )]
    SelfApproval,
    #[error("Only administrators may list all tasks.")]
    NotAdmin,
    /// The token's user was erased, which this service has not yet learned from the revocation feed.
    #[error("The token was revoked.")]
    CallerErased,
    /// The page is further in the list than this, and more than so many tasks match.
    #[error(
        "Must be at most {0} in this order, because more than {1} tasks match. Sort by created, or narrow the list by a \
         filter."
    )]
    OffsetTooHigh(i64, i64),
    #[error("Is required to reject this task.")]
    CommentRequired,
    /// This field asks for what is not set up, or leaves no one to decide. The message says what it lacks.
    #[error("{1}")]
    Unavailable(&'static str, &'static str),
    #[error(
        "The task is already {}. {} is final.", .0.name(),
        if *.0 == TaskStatus::Cancelled { "That" } else { "A decision" }
    )]
    AlreadyResolved(TaskStatus),
    /// The caller, who may read the task, has seen another version than this one.
    #[error(
        "The task is not the version that the request names. See `task` for what it is now, and send its `version` if \
         that is what you mean."
    )]
    Changed(Value),
    /// The URL's host is not public, and the operator has not allowed its network. The text names no address: callers must
    /// not learn what a host name resolves to inside the operator's network.
    #[error(
        "Must lead to a public address. This one is, or resolves to, a loopback, private or otherwise non-public address \
         that WEBHOOK_ALLOWED_NETWORKS does not allow."
    )]
    AddressRefused,
    /// The caller shapes requests to an address that is not public, and the origin is not one of flow engines. Has the
    /// names of the fields.
    #[error(
        "Is taken for an address that is not public only if the operator lists the origin of the URL in \
         WEBHOOK_ENGINE_ORIGINS."
    )]
    NotAnEngine(Vec<&'static str>),
    #[error(
        "Go over https only, or to an origin that the operator lists in WEBHOOK_ENGINE_ORIGINS."
    )]
    NotHttps,
    #[error(
        "Cannot be kept: the operator has not set WEBHOOK_HEADER_KEYS, the keys that encrypt them."
    )]
    NoHeaderKeys,
    /// This field would tell the task's metadata to a user who may not see it.
    #[error("Must not have `metadata`, which only the task's creator and administrators see.")]
    HidesMetadata(&'static str),
    /// Webhooks of a new task that are refused, by their places in the request.
    #[error("Webhooks are refused.")]
    Webhooks(Vec<(usize, Self)>),
    /// The maximum, and of whom.
    #[error("The task already has {0} webhooks{1}, the maximum. Delete one first.")]
    TooManyWebhooks(i64, &'static str),
    /// Who has tried too many webhooks, how many they may try, and how long to wait.
    #[error("{0} may try {1} webhooks within a minute. Try again after `Retry-After`.")]
    TooManyTests(&'static str, i64, Duration),
    #[error("Deliveries to the webhook's host are paused by an administrator.")]
    Paused,
    #[error(
        "No result within 15 seconds: no webhook-worker runs, or the receiver takes longer. It may have got the call."
    )]
    NoResult,
    #[error("The delivery was sent or has failed, so there is nothing to cancel.")]
    DeliveryEnded,
    #[error("1,000 hosts are paused already. Resume one of them first.")]
    TooManyPausedHosts,
    #[error(transparent)]
    Repeat(#[from] RepeatError),
    #[error(transparent)]
    Quota(#[from] QuotaError),
    #[error(transparent)]
    Database(#[from] database::Error),
}

impl TaskError {
    /// Whether nothing was written. Otherwise it is not known.
    pub(crate) fn wrote_nothing(&self) -> bool {
        !matches!(self, Self::Database(error) if !error.wrote_nothing())
    }
}

impl From<TaskError> for Problem {
    fn from(error: TaskError) -> Self {
        let detail = error.to_string();
        let refused = |status, code| Self::new(status, code, detail.clone());
        let conflict = |code| refused(StatusCode::CONFLICT, code);
        let limited = |code, wait| refused(StatusCode::TOO_MANY_REQUESTS, code).retry_after(wait);
        let invalid_text = |code| Invalid::new(code, detail.clone());
        let invalid = |field, code| Self::invalid_field(field, invalid_text(code));
        match error {
            TaskError::NotFound(what) => Self::not_found(what),
            TaskError::Forbidden | TaskError::NotManager(_) | TaskError::SelfApproval => {
                Self::forbidden(detail)
            }
            TaskError::NotAdmin => auth::insufficient_scope(auth::ADMIN_SCOPE),
            TaskError::CallerErased => auth::token_revoked(),
            TaskError::OffsetTooHigh(..) => invalid("offset", "out-of-range"),
            TaskError::CommentRequired => invalid("comment", "required"),
            TaskError::Unavailable(field, _) => invalid(field, "unavailable"),
            TaskError::AlreadyResolved(status) => {
                conflict("task-already-resolved").with("taskStatus", status.name())
            }
            TaskError::Changed(task) => conflict("task-changed").with("task", task),
            TaskError::AddressRefused => invalid("url", "address-not-allowed"),
            TaskError::NotAnEngine(fields) => {
                let invalid = |field| FieldError::new(field, invalid_text("not-an-engine-origin"));
                Self::validation(fields.into_iter().map(invalid).collect())
            }
            TaskError::NotHttps => invalid("headers", "https-required"),
            TaskError::NoHeaderKeys => invalid("headers", "setting-missing"),
            TaskError::HidesMetadata(field) => invalid(field, "hidden-field"),
            TaskError::Webhooks(webhooks) => refused_webhooks(webhooks),
            TaskError::TooManyWebhooks(..) => conflict("too-many-webhooks"),
            TaskError::TooManyTests(.., wait) => limited("rate-limited", wait),
            TaskError::Paused => conflict("deliveries-paused"),
            TaskError::NoResult => refused(StatusCode::SERVICE_UNAVAILABLE, "no-test-result")
                .retry_after(Duration::from_secs(15)),
            TaskError::DeliveryEnded => conflict("delivery-ended"),
            TaskError::TooManyPausedHosts => conflict("too-many-paused-hosts"),
            TaskError::Repeat(error) => error.into(),
            TaskError::Quota(error) => error.into(),
            TaskError::Database(error) => error.into(),
        }
    }
}

/// The errors of the fields of all webhooks, or the first problem that is about no field.
fn refused_webhooks(refused: Vec<(usize, TaskError)>) -> Problem {
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

problem_responses! {
    /// Problems of lists, which administrators may ask for all tasks.
    pub(crate) NotAdmin {
        TaskError::NotAdmin => "`role=any` is for administrators.",
    }
    /// Problems of operations that need more than read access to a task.
    pub(crate) Forbidden {
        TaskError::Forbidden => "The caller can read the task but lacks the permission for this operation.",
    }
    pub(crate) NoTask {
        TaskError::NotFound("task") => "The task does not exist or is not visible to the caller.",
    }
    /// Problems of operations that change a pending task.
    pub(crate) AlreadyResolved {
        TaskError::AlreadyResolved(TaskStatus::Approved) => "The task is already resolved.",
    }
    /// Problems of operations that may name the version of the task that they apply to.
    pub(crate) Changed: AlreadyResolved {
        TaskError::Changed(json!({
            "id": "665f1c2ab3d4e5f60718293a",
            "approver": "grace@example.com",
            "requester": "ada@example.com",
            "title": "Buy three printers",
            "description": "The first one jams.",
            "decisionBy": null,
            "status": "pending",
            "version": 2,
        })) => "The task is not the version of `If-Match` or `version`.",
    }
    pub(crate) InvalidWebhook: BodyProblems {
        TaskError::AddressRefused => "The URL's host is not allowed.",
        TaskError::NotAnEngine(vec!["body"]) => "The address is not public, and its origin is not one of flow engines.",
        TaskError::NoHeaderKeys => "The operator has not set what headers need.",
    }
    /// Problems of registrations for a task that accepts none.
    pub(crate) NoMoreWebhooks: AlreadyResolved, QuotaExceeded, Repeated {
        TaskError::TooManyWebhooks(20, "") => "The task already has 20 webhooks, or 10 of approvers and requesters.",
    }
    pub(crate) NoWebhook {
        TaskError::NotFound("webhook") => "The webhook does not exist or is not visible to the caller.",
    }
    pub(crate) NoTest {
        TaskError::Paused => "Deliveries to the host are paused.",
        TaskError::TooManyTests("You", 10, Duration::from_secs(30)) => "The user, or all together, try too many webhooks.",
        TaskError::NoResult => "There was no result in time.",
    }
    pub(crate) NoDelivery {
        TaskError::NotFound("delivery") => "The delivery does not exist or is not visible to the caller.",
    }
    pub(crate) NoPendingDelivery: NoDelivery {
        TaskError::DeliveryEnded => "The delivery was sent or has failed.",
    }
    pub(crate) TooManyPausedHosts {
        TaskError::TooManyPausedHosts => "1,000 hosts are paused already.",
    }
}
