//! The history of a run as seen from outside: the outcomes of calls, the requests that receivers got, and what is wrong with
//! both.

use std::collections::HashMap;
use std::sync::Mutex;
use std::sync::atomic::AtomicU64;
use std::time::{Duration, Instant};

use chrono::{DateTime, Utc};
use rig::lock;
use serde_json::Value;

/// The outcome of a call that changes something. Calls are never repeated.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum CallOutcome {
    /// `200`.
    Succeeded,
    /// A timeout, a broken connection, or a 502, 503 or 504 during faults: the change may or may not have
    /// happened.
    Unknown,
    /// `409 task-already-resolved`, with the status of the task.
    AlreadyResolved(String),
    /// `401` to a token that a promotion has revoked: nothing has happened.
    SignedOut,
    /// Any other response, described: every call of a run is valid.
    Unexpected(String),
}

impl CallOutcome {
    /// The response, if no fault explains it. Only a decision can come too late.
    pub(crate) fn unexpected(&self) -> Option<&str> {
        match self {
            Self::Unexpected(response) => Some(response),
            Self::AlreadyResolved(_) => Some("409"),
            Self::Succeeded | Self::Unknown | Self::SignedOut => None,
        }
    }
}

/// A webhook that a caller tried to register.
#[derive(Debug, Clone)]
pub(crate) struct Hook {
    /// The last segment of its URL, unique in the run.
    pub(crate) key: String,
    pub(crate) outcome: CallOutcome,
    /// Whether its receiver responds immediately.
    pub(crate) fast: bool,
    /// Whether its receiver responds to every attempt with 410.
    pub(crate) gone: bool,
}

/// A decision that a caller tried to make.
#[derive(Debug, Clone)]
pub(crate) struct Decision {
    pub(crate) requested: &'static str,
    pub(crate) outcome: CallOutcome,
    /// When the caller received the response.
    pub(crate) at: Instant,
}

/// A task whose creation succeeded, and every call about it.
#[derive(Debug, Clone)]
pub(crate) struct Task {
    pub(crate) id: String,
    pub(crate) creation: Creation,
    /// The time of `decisionBy` if the task is left undecided, and its webhooks get the event `due`.
    pub(crate) due: Option<DateTime<Utc>>,
    pub(crate) hooks: Vec<Hook>,
    /// More than one when callers raced.
    pub(crate) decisions: Vec<Decision>,
}

/// The request that created a task, and what it returned besides the id.
#[derive(Debug, Clone, Default)]
pub(crate) struct Creation {
    /// Its `Idempotency-Key`.
    pub(crate) key: String,
    pub(crate) request: Value,
    pub(crate) secret: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// Not at all, or not yet.
    None,
    /// `200`.
    Accepted,
    /// Any other response; the next attempt must not come before this pause has passed.
    Failed(Duration),
}

#[derive(Debug, Clone)]
pub(crate) struct Arrival {
    pub(crate) webhook_id: String,
    /// The `id` in the body.
    pub(crate) task: String,
    /// The `status` in the body.
    pub(crate) status: String,
    pub(crate) signature_error: Option<&'static str>,
    pub(crate) at: Instant,
    /// The same moment on the clock of `decisionBy`.
    pub(crate) received: DateTime<Utc>,
    pub(crate) outcome: Outcome,
    /// When the receiver responded; equal to `at` until then.
    pub(crate) replied_at: Instant,
}

/// Requests by the key of the webhook.
pub(crate) type Arrivals = HashMap<String, Vec<Arrival>>;

#[derive(Debug, Default)]
pub(crate) struct History {
    pub(crate) next_task: AtomicU64,
    pub(crate) tasks: Mutex<Vec<Task>>,
    /// The outcomes of creations that did not succeed.
    pub(crate) uncreated: Mutex<Vec<CallOutcome>>,
    pub(crate) arrivals: Mutex<Arrivals>,
}

impl History {
    /// Records a request without a reply yet. Returns the number of earlier requests for this webhook.
    pub(crate) fn record_arrival(&self, key: &str, arrival: Arrival) -> usize {
        let mut arrivals = lock(&self.arrivals);
        let all = arrivals.entry(key.to_owned()).or_default();
        all.push(arrival);
        all.len() - 1
    }

    /// Records how the receiver replies to the request of this number.
    pub(crate) fn record_reply(&self, key: &str, number: usize, outcome: Outcome) {
        let mut arrivals = lock(&self.arrivals);
        if let Some(arrival) = arrivals.get_mut(key).and_then(|all| all.get_mut(number)) {
            arrival.outcome = outcome;
            arrival.replied_at = Instant::now();
        }
    }

    /// Creations that were answered as no creation may be.
    pub(crate) fn unexpected_creations(&self) -> Vec<Finding> {
        let uncreated = lock(&self.uncreated);
        let unexpected = uncreated.iter().filter_map(CallOutcome::unexpected);
        let finding = |response| {
            let what = format!("creating a task: {response}");
            Finding::new(Violation::UnexpectedResponse, "-", what)
        };
        unexpected.map(finding).collect()
    }

    pub(crate) fn is_delivered(&self, key: &str) -> bool {
        let arrivals = lock(&self.arrivals);
        let mut all = arrivals.get(key).into_iter().flatten();
        all.any(|arrival| arrival.outcome == Outcome::Accepted)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Violation {
    /// Data that was confirmed with 200 is missing, or a webhook of a decision never arrived.
    Lost,
    /// A webhook arrived for a decision that was not made, or two decisions of one task succeeded.
    Phantom,
    /// A webhook arrived under two webhook-ids, or two webhooks under one.
    WebhookId,
    /// A signature is missing or wrong.
    Signature,
    /// A webhook that arrived is not `sent`, or one that was refused with 410 is not `fail`.
    WebhookStatus,
    /// An attempt came before the `Retry-After` of the previous one had passed.
    RetriedTooEarly,
    /// A decision succeeded while no standby could have it.
    Unreplicated,
    /// A token from before a promotion is accepted.
    EarlierToken,
    /// An account is not in the state that was confirmed with 200.
    AccountState,
    /// A response that no fault explains.
    UnexpectedResponse,
    Panic,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Finding {
    pub(crate) violation: Violation,
    pub(crate) task: String,
    pub(crate) what: String,
}

impl Finding {
    pub(crate) fn new(violation: Violation, task: &str, what: impl Into<String>) -> Self {
        Self {
            violation,
            task: task.to_owned(),
            what: what.into(),
        }
    }
}
