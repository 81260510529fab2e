//! Compares the responses to callers with the requests to receivers and with the final state.

use std::collections::{BTreeSet, HashMap};
use std::time::{Duration, Instant};

use crate::final_state::{FinalState, FinalStates};
use crate::history::{
    Arrival, Arrivals, CallOutcome, Decision, Finding, Hook, Outcome, Task, Violation,
};

/// Tolerance for the difference between the clocks of two processes.
const CLOCK_TOLERANCE: Duration = Duration::from_millis(50);

#[derive(Debug, Default)]
pub(crate) struct CheckResult {
    pub(crate) tasks: usize,
    pub(crate) succeeded: usize,
    pub(crate) unknown: usize,
    /// Decisions with an unknown outcome that took effect.
    pub(crate) unknown_decided: usize,
    /// Decisions that were refused because the task was already decided.
    pub(crate) conflicts: usize,
    /// Decisions that were refused because a promotion had revoked the token.
    pub(crate) signed_out: usize,
    pub(crate) expected: usize,
    pub(crate) delivered: usize,
    /// How many of the expected ones were for due dates.
    pub(crate) due: usize,
    /// Webhooks whose receivers respond with 410.
    pub(crate) gone: usize,
    /// Requests to receivers. The signatures of all of them are checked.
    pub(crate) requests: usize,
    /// Accepted deliveries of a webhook after the first one.
    pub(crate) duplicates: usize,
    /// Time from the end of the last fault to the latest first delivery.
    pub(crate) latest: Option<Duration>,
    /// Times from a decision's response to its delivery to a fast receiver, before the first fault; sorted.
    pub(crate) latencies: Vec<Duration>,
    pub(crate) findings: Vec<Finding>,
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct Times {
    /// No fault affects decisions before this.
    pub(crate) calm_until: Instant,
    /// When the last fault ended.
    pub(crate) healed: Instant,
}

pub(crate) fn check(
    tasks: &[Task],
    states: &FinalStates,
    arrivals: &Arrivals,
    times: Times,
) -> CheckResult {
    let mut checker = Checker {
        arrivals,
        times,
        result: CheckResult::default(),
        webhook_ids: HashMap::new(),
    };
    let missing = FinalState::default();
    for task in tasks {
        checker.check_decisions(task, states.get(&task.id).unwrap_or(&missing));
        checker.check_webhooks(task, states.get(&task.id).unwrap_or(&missing));
    }
    checker.check_unknown_webhooks(tasks);
    let mut result = checker.result;
    result.tasks = tasks.len();
    result.latencies.sort_unstable();
    result.findings.sort_by_key(|finding| finding.violation);
    result
}

impl CheckResult {
    pub(crate) fn count(&self, violation: Violation) -> usize {
        let same = |finding: &&Finding| finding.violation == violation;
        self.findings.iter().filter(same).count()
    }

    pub(crate) fn latency(&self, percent: usize) -> Option<Duration> {
        let rank = (self.latencies.len() * percent).div_ceil(100);
        self.latencies.get(rank.saturating_sub(1)).copied()
    }
}

struct Checker<'run> {
    arrivals: &'run Arrivals,
    times: Times,
    result: CheckResult,
    /// The webhook of each webhook-id that was seen.
    webhook_ids: HashMap<&'run str, &'run str>,
}

impl<'run> Checker<'run> {
    fn report(&mut self, violation: Violation, task: &str, what: impl Into<String>) {
        let finding = Finding::new(violation, task, what);
        self.result.findings.push(finding);
    }

    fn check_decisions(&mut self, task: &Task, state: &FinalState) {
        let Some(status) = &state.status else {
            let what = "was created with 200 and is missing";
            return self.report(Violation::Lost, &task.id, what);
        };
        let mut won = 0;
        for decision in &task.decisions {
            let requested = decision.requested;
            match &decision.outcome {
                CallOutcome::Succeeded => {
                    won += 1;
                    self.result.succeeded += 1;
                    if status != requested {
                        let what = format!("was {requested} with 200, and is {status}");
                        self.report(Violation::Lost, &task.id, what);
                    }
                }
                CallOutcome::Unknown => {
                    self.result.unknown += 1;
                    self.result.unknown_decided += usize::from(status == requested);
                }
                CallOutcome::SignedOut => self.result.signed_out += 1,
                CallOutcome::AlreadyResolved(winner) => {
                    self.result.conflicts += 1;
                    self.check_conflict(task, decision, winner, status);
                }
                CallOutcome::Unexpected(response) => {
                    let what = format!("was to be {requested}, and the response was {response}");
                    self.report(Violation::UnexpectedResponse, &task.id, what);
                }
            }
        }
        self.check_refused(task, state, status);
        if won > 1 {
            self.report(Violation::Phantom, &task.id, "was decided twice with 200");
        }
    }

    /// A task without decisions, or whose decisions were all refused with 401, must not be decided.
    fn check_refused(&mut self, task: &Task, state: &FinalState, status: &str) {
        let refused = |one: &Decision| one.outcome == CallOutcome::SignedOut;
        if state.is_decided() && task.decisions.iter().all(refused) {
            let what =
                format!("is {status}, and no decision was made or each was refused with 401");
            self.report(Violation::Phantom, &task.id, what);
        }
    }

    /// Checks a decision that was refused because the task was already `winner`.
    fn check_conflict(&mut self, task: &Task, lost: &Decision, winner: &str, status: &str) {
        if winner != status {
            let what = format!("was {winner} according to a 409, and is {status}");
            self.report(Violation::Phantom, &task.id, what);
        }
        let won = |one: &Decision| {
            one.requested == winner
                && matches!(one.outcome, CallOutcome::Succeeded | CallOutcome::Unknown)
                && one.requested != lost.requested
        };
        if !task.decisions.iter().any(won) {
            let what = "was refused with 409, and no other caller had decided";
            self.report(Violation::UnexpectedResponse, &task.id, what);
        }
    }

    fn check_webhooks(&mut self, task: &'run Task, state: &FinalState) {
        for hook in &task.hooks {
            let key = hook.key.as_str();
            let is_listed = state.hooks.contains_key(key);
            let is_confirmed = hook.outcome == CallOutcome::Succeeded;
            if is_confirmed && !is_listed {
                let what = format!("webhook {key} was registered with 200 and is missing");
                self.report(Violation::Lost, &task.id, what);
            }
            if let Some(response) = hook.outcome.unexpected() {
                let what = format!("registering webhook {key}: {response}");
                self.report(Violation::UnexpectedResponse, &task.id, what);
            }
            let all = self.arrivals.get(key).map_or(&[][..], Vec::as_slice);
            self.check_contents(task, hook, state, all);
            self.check_pauses(task, hook, state, all);
            if event_of(task, state).is_some() && (is_confirmed || is_listed) {
                self.check_delivery(task, hook, state, all);
            } else if !all.is_empty() {
                let what = format!("webhook {key} arrived without a decision or due date");
                self.report(Violation::Phantom, &task.id, what);
            }
        }
    }

    fn check_delivery(&mut self, task: &Task, hook: &Hook, state: &FinalState, all: &[Arrival]) {
        let mut accepted = all.iter().filter(|one| one.outcome == Outcome::Accepted);
        let key = &hook.key;
        let webhook_status = state.hooks.get(key).map_or("missing", String::as_str);
        if hook.gone {
            return self.check_gone(task, key, all, webhook_status);
        }
        self.result.expected += 1;
        self.result.due += usize::from(task.due.is_some());
        let Some(first) = accepted.next() else {
            let what = format!(
                "webhook {key} was never accepted after {} attempts; its status is {webhook_status}",
                all.len()
            );
            return self.report(Violation::Lost, &task.id, what);
        };
        self.result.delivered += 1;
        self.result.duplicates += accepted.count();
        // The status of a webhook is that of its decision.
        if task.due.is_none() && webhook_status != "sent" {
            let what = format!("webhook {key} arrived, and its status is {webhook_status}");
            self.report(Violation::WebhookStatus, &task.id, what);
        }
        let healed = self.times.healed;
        let after = first.replied_at.saturating_duration_since(healed);
        self.result.latest = self.result.latest.max(Some(after));
        if let [decision] = task.decisions.as_slice()
            && decision.outcome == CallOutcome::Succeeded
            && decision.at < self.times.calm_until
            && hook.fast
        {
            let latency = first.replied_at.saturating_duration_since(decision.at);
            self.result.latencies.push(latency);
        }
    }

    /// A receiver that responds with 410 must get at least one attempt, and the webhook must fail.
    fn check_gone(&mut self, task: &Task, key: &str, all: &[Arrival], webhook_status: &str) {
        self.result.gone += 1;
        if all.is_empty() {
            let what = format!("webhook {key} never arrived; its status is {webhook_status}");
            self.report(Violation::Lost, &task.id, what);
        } else if task.due.is_none() && webhook_status != "fail" {
            let what =
                format!("webhook {key} was refused with 410, and its status is {webhook_status}");
            self.report(Violation::WebhookStatus, &task.id, what);
        }
    }

    /// Checks that no attempt came before the `Retry-After` of the previous one had passed. A response that was lost with
    /// its worker, or with a crash of Postgres, is not known to the next attempt.
    fn check_pauses(&mut self, task: &Task, hook: &Hook, state: &FinalState, all: &[Arrival]) {
        let is_refused = |one: &&Arrival| matches!(one.outcome, Outcome::Failed(_));
        let refused = all.iter().filter(is_refused);
        let recorded = state.refusals.get(&hook.key).copied().unwrap_or_default();
        if recorded < refused.count() {
            return;
        }
        for (before, after) in all.iter().zip(all.iter().skip(1)) {
            if let Outcome::Failed(pause) = before.outcome
                && after.at + CLOCK_TOLERANCE < before.replied_at + pause
            {
                let waited = after.at.saturating_duration_since(before.replied_at);
                let what = format!(
                    "webhook {} was retried after {waited:?} instead of {pause:?}",
                    hook.key
                );
                self.report(Violation::RetriedTooEarly, &task.id, what);
            }
        }
    }

    fn check_contents(
        &mut self,
        task: &Task,
        hook: &'run Hook,
        state: &FinalState,
        all: &'run [Arrival],
    ) {
        let key = &hook.key;
        let mut ids = BTreeSet::new();
        self.result.requests += all.len();
        for arrival in all {
            if let Some(error) = arrival.signature_error {
                let what = format!("webhook {key}: {error}");
                self.report(Violation::Signature, &task.id, what);
            }
            let id = arrival.webhook_id.as_str();
            let first_key = *self.webhook_ids.entry(id).or_insert(key);
            if first_key != key {
                let what = format!("webhooks {key} and {first_key} have the same webhook-id {id}");
                self.report(Violation::WebhookId, &task.id, what);
            }
            ids.insert(id);
            let expected = event_of(task, state);
            if arrival.task != task.id || Some(arrival.status.as_str()) != expected {
                let what = format!(
                    "webhook {key} reported {} for task {}, and the event is {}",
                    arrival.status,
                    arrival.task,
                    expected.unwrap_or("missing")
                );
                self.report(Violation::Phantom, &task.id, what);
            }
            if task.due.is_some_and(|due| arrival.received < due) {
                let what = format!("webhook {key} arrived before the due date");
                self.report(Violation::Phantom, &task.id, what);
            }
        }
        if ids.len() > 1 {
            let what = format!("webhook {key} arrived with several webhook-ids: {ids:?}");
            self.report(Violation::WebhookId, &task.id, what);
        }
    }

    fn check_unknown_webhooks(&mut self, tasks: &[Task]) {
        let hooks = tasks.iter().flat_map(|task| &task.hooks);
        let known: BTreeSet<&str> = hooks.map(|hook| hook.key.as_str()).collect();
        for (key, all) in self.arrivals {
            if let (false, Some(arrival)) = (known.contains(key.as_str()), all.first()) {
                let what = format!("webhook {key:?} arrived, and was never registered");
                self.report(Violation::Phantom, &arrival.task, what);
            }
        }
    }
}

/// The event of which a task's webhooks are told, if there is one.
fn event_of<'state>(task: &Task, state: &'state FinalState) -> Option<&'state str> {
    let decided = state.status.as_deref().filter(|_| state.is_decided());
    task.due.map_or(decided, |_| Some("due"))
}

#[cfg(test)]
#[path = "checker_tests.rs"]
mod tests;
