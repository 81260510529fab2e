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
}

values::names! {
    /// Whose limit it is, with the name in metrics.
    pub(super) enum Whose {
        User = "user",
        /// A user's, for another user who asks. Metrics count it as the user's.
        Creator = "creator",
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
        Self { refusal, whose }
    }

    /// The same for a request that changes what the creator has. Another user does not learn how much that is.
    pub(crate) fn of_creator(mut self, is_creator: bool) -> Self {
        if self.whose == Whose::User && !is_creator {
            self.whose = Whose::Creator;
        }
        self
    }
}

impl From<QuotaError> for Problem {
    fn from(error: QuotaError) -> Self {
        match error.refusal {
            Refusal::Stock(excess) => stock(excess, error.whose),
            Refusal::Rate(resource, wait) => rate(resource, wait, error.whose),
        }
    }
}

fn stock(excess: Excess, whose: Whose) -> Problem {
    let what = match excess.resource {
        Resource::Tasks => "pending tasks",
        Resource::Webhooks => "webhooks",
        Resource::Bytes => "bytes of titles, descriptions, metadata and options of webhooks",
        Resource::Mails => "mails",
    };
    let message = match whose {
        Whose::User => format!(
            "You have {} {what}, and may have {}. Try again when you have fewer, or ask an administrator for more.",
            excess.used, excess.limit
        ),
        Whose::Creator => format!("The task's creator has no room for more {what}."),
        Whose::All => format!(
            "All users together have as many {what} as this system allows. Ask an administrator."
        ),
    };
    let problem = Problem::new(StatusCode::CONFLICT, "quota-exceeded", message)
        .with("resource", excess.resource.name());
    if whose == Whose::Creator {
        return problem;
    }
    problem
        .with("limit", excess.limit)
        .with("used", excess.used)
}

fn rate(resource: Resource, wait: Duration, whose: Whose) -> Problem {
    let who = match whose {
        Whose::User | Whose::Creator => "You add",
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
