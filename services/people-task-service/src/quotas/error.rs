use std::time::Duration;

use actix_web::http::StatusCode;
use http_kit::{Problem, problem_responses};
use values::Names as _;

use super::limits::{Excess, Refusal, Resource};

#[derive(Debug, Clone, Copy, thiserror::Error)]
#[error("a quota is exceeded")]
pub(crate) struct QuotaError {
    refusal: Refusal,
    whose: Whose,
    /// Another user asked than the one whose limit it is.
    is_of_another: bool,
}

values::names! {
    /// Whose limit it is, with the name in metrics.
    pub(super) enum Whose {
        User = "user",
        All = "all",
    }
}

impl QuotaError {
    pub(super) fn new(refusal: Refusal, whose: Whose) -> Self {
        let (kind, resource) = match refusal {
            Refusal::Stock(excess) => ("stock", excess.resource),
            Refusal::Rate(resource, _) => ("rate", resource),
        };
        let (resource, of) = (resource.name(), whose.name());
        metrics::counter!("quota_refusals_total", "kind" => kind, "resource" => resource, "of" => of)
            .increment(1);
        Self {
            refusal,
            whose,
            is_of_another: false,
        }
    }

    /// The same for a request of another user, who does not learn what the creator has.
    pub(crate) fn of_creator(self) -> Self {
        Self {
            is_of_another: true,
            ..self
        }
    }
}

impl From<QuotaError> for Problem {
    fn from(error: QuotaError) -> Self {
        match (error.refusal, error.whose) {
            (Refusal::Stock(excess), Whose::User) if error.is_of_another => {
                stock_of_creator(excess.resource)
            }
            (Refusal::Stock(excess), whose) => stock(excess, whose),
            (Refusal::Rate(resource, wait), whose) => rate(resource, wait, whose),
        }
    }
}

/// What there is too much of.
fn what(resource: Resource) -> &'static str {
    match resource {
        Resource::Tasks => "pending tasks",
        Resource::Webhooks => "webhooks",
        Resource::Bytes => "bytes of titles, descriptions, metadata and options of webhooks",
        Resource::Mails => "mails",
    }
}

fn stock_of_creator(resource: Resource) -> Problem {
    let what = what(resource);
    let message = format!("The task's creator has no room for more {what}.");
    exceeded(resource, message)
}

fn exceeded(resource: Resource, message: String) -> Problem {
    Problem::new(StatusCode::CONFLICT, "quota-exceeded", message).with("resource", resource.name())
}

fn stock(excess: Excess, whose: Whose) -> Problem {
    let what = what(excess.resource);
    let message = match whose {
        Whose::User => format!(
            "You have {} {what}, and may have {}. Try again when you have fewer, or ask an administrator for more.",
            excess.used, excess.limit
        ),
        Whose::All => format!(
            "All users together have as many {what} as this system allows. Ask an administrator."
        ),
    };
    exceeded(excess.resource, message)
        .with("limit", excess.limit)
        .with("used", excess.used)
}

fn rate(resource: Resource, wait: Duration, whose: Whose) -> Problem {
    let who = match whose {
        Whose::User => "You add",
        Whose::All => "All users together add",
    };
    let message = format!(
        "{who} too many {} at a time. Try again after `Retry-After`.",
        resource.name()
    );
    Problem::new(StatusCode::TOO_MANY_REQUESTS, "rate-limited", message)
        .with("resource", resource.name())
        .retry_after(wait)
}

problem_responses! {
    /// Problems of operations that add something.
    pub(crate) QuotaExceeded {
        stock(
            Excess { resource: Resource::Tasks, limit: 1_000_000, used: 1_000_000 },
            Whose::User,
        ) => "The user, or all together, have as much as they may have.",
        rate(Resource::Tasks, Duration::from_secs(60), Whose::User)
            => "The user, or all together, add too much at a time.",
    }
}
