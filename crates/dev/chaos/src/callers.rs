//! A client that makes each call exactly once, and users of a run, who sign in again when a promotion has revoked their
//! tokens.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use local_stack::holds_within;
use rig::{Call, Client, Person, Process, lock};
use serde_json::{Value, json};

use crate::databases::Failovers;
use crate::history::{CallOutcome, Finding, Violation};

const TIMEOUT: Duration = Duration::from_secs(8);

const MAX_EXAMPLES: usize = 10;

/// How long a process may take to notice a promotion after all faults.
const NOTICE_LIMIT: Duration = Duration::from_secs(10);

pub(crate) struct OneShotClient<'run> {
    gateways: Vec<Client>,
    /// Calls the first gateway, and repeats calls: before and after the load.
    pub(crate) repeating: Client,
    next: AtomicUsize,
    /// Whether nothing explains a call without a response.
    is_calm: AtomicBool,
    /// A promotion revokes all tokens. Without a standby there is none.
    failovers: Option<&'run Failovers>,
    statistics: Mutex<Statistics>,
}

#[derive(Debug, Default)]
pub(crate) struct Statistics {
    pub(crate) calls: usize,
    /// Calls with an unexpected outcome.
    pub(crate) failed: usize,
    pub(crate) unknown: usize,
    /// What the first of both were.
    pub(crate) examples: Vec<String>,
    pub(crate) slowest: Duration,
}

impl<'run> OneShotClient<'run> {
    pub(crate) fn new(gateways: &[String], failovers: Option<&'run Failovers>) -> Self {
        let client = |url: &String| Client::with_timeout(url, TIMEOUT);
        Self {
            gateways: gateways.iter().map(client).collect(),
            repeating: Client::new(gateways.first().map_or("", String::as_str)),
            next: AtomicUsize::new(0),
            is_calm: AtomicBool::new(true),
            failovers,
            statistics: Mutex::default(),
        }
    }

    /// Tells whether every call must have a response: no fault is injected, and nothing is stopped that cannot drain its
    /// connections.
    pub(crate) fn set_calm(&self, is_calm: bool) {
        self.is_calm.store(is_calm, Ordering::Relaxed);
    }

    /// Returns the calls since the last time.
    pub(crate) fn take_statistics(&self) -> Statistics {
        std::mem::take(&mut *lock(&self.statistics))
    }

    /// Makes a call at the next gateway, and returns its outcome and the response body.
    pub(crate) fn call(&self, call: &Call<'_>) -> (CallOutcome, Value) {
        let next = self.next.fetch_add(1, Ordering::Relaxed);
        let Some(gateway) = self.gateways.get(next % self.gateways.len().max(1)) else {
            return (CallOutcome::Unknown, Value::Null);
        };
        let start = Instant::now();
        let response = gateway.once(call);
        let (mut outcome, body, what) = match response {
            Ok((status, _, body)) => (outcome_of(status, &body), body, status.to_string()),
            Err(error) => (CallOutcome::Unknown, Value::Null, error.to_string()),
        };
        if outcome == CallOutcome::Unknown && self.is_calm.load(Ordering::Relaxed) {
            outcome = CallOutcome::Unexpected(format!("{what} without a fault"));
        }
        self.record(call, &outcome, &what, start.elapsed());
        (outcome, body)
    }

    /// Makes a call with a token. The outcome is [`CallOutcome::SignedOut`] if it was refused and a promotion
    /// explains that. `requested` is when the token was requested.
    pub(crate) fn call_with_token(
        &self,
        call: &Call<'_>,
        requested: Instant,
    ) -> (CallOutcome, Value) {
        let is_explained = || self.failovers.is_some_and(|all| all.may_refuse(requested));
        match self.call(call) {
            (CallOutcome::Unexpected(response), body)
                if response.starts_with("401") && is_explained() =>
            {
                (CallOutcome::SignedOut, body)
            }
            other => other,
        }
    }

    fn record(&self, call: &Call<'_>, outcome: &CallOutcome, what: &str, elapsed: Duration) {
        let mut statistics = lock(&self.statistics);
        statistics.calls += 1;
        statistics.slowest = statistics.slowest.max(elapsed);
        match outcome {
            CallOutcome::Unexpected(_) => statistics.failed += 1,
            CallOutcome::Unknown => statistics.unknown += 1,
            CallOutcome::Succeeded | CallOutcome::AlreadyResolved(_) | CallOutcome::SignedOut => {
                return;
            }
        }
        if statistics.examples.len() < MAX_EXAMPLES {
            // The query may have a secret.
            let path = call.path.split('?').next().unwrap_or_default();
            let millis = elapsed.as_millis();
            let example = format!("{} {path}: {what}, after {millis} ms", call.method);
            statistics.examples.push(example);
        }
    }
}

/// Classifies a response. When part of the system is unavailable, the response must still be a problem.
fn outcome_of(status: u16, body: &Value) -> CallOutcome {
    let text = |name: &str| body.get(name).and_then(Value::as_str).unwrap_or_default();
    match (status, text("code")) {
        (200, _) => CallOutcome::Succeeded,
        (502..=504, code) if !code.is_empty() => CallOutcome::Unknown,
        (409, "task-already-resolved") => {
            CallOutcome::AlreadyResolved(text("taskStatus").to_owned())
        }
        (_, code) => CallOutcome::Unexpected(format!("{status} {code}").trim().to_owned()),
    }
}

pub(crate) struct TestUser {
    pub(crate) email: String,
    password: String,
    /// All tokens, and when each was requested; the current one last.
    tokens: Mutex<Vec<(String, Instant)>>,
}

impl TestUser {
    /// Signs a user up or in, by a call that is repeated.
    pub(crate) fn new(sign: impl FnOnce() -> anyhow::Result<Person>) -> anyhow::Result<Self> {
        let requested = Instant::now();
        let person = sign()?;
        Ok(Self {
            email: person.email,
            password: person.password,
            tokens: Mutex::new(vec![(person.token, requested)]),
        })
    }

    /// Signs in for another token, with retries.
    pub(crate) fn sign_in_again(&self, client: &OneShotClient<'_>) -> anyhow::Result<()> {
        let requested = Instant::now();
        let again = client.repeating.sign_in(&self.email, &self.password)?;
        lock(&self.tokens).push((again.token, requested));
        Ok(())
    }

    pub(crate) fn token(&self) -> String {
        self.current().0
    }

    /// Makes a call as this user, and returns its outcome and the response body. After a promotion that revoked the
    /// token the outcome is [`CallOutcome::SignedOut`], and later calls have another token.
    pub(crate) fn call(&self, client: &OneShotClient<'_>, call: Call<'_>) -> (CallOutcome, Value) {
        let (token, requested) = self.current();
        let (outcome, body) = client.call_with_token(&call.token(&token), requested);
        let outcome = match outcome {
            CallOutcome::SignedOut => self.renew(client, requested),
            other => other,
        };
        (outcome, body)
    }

    /// Signs in once, unless another caller has done it. After an unknown outcome the next call tries again.
    fn renew(&self, client: &OneShotClient<'_>, refused: Instant) -> CallOutcome {
        let mut tokens = lock(&self.tokens);
        if tokens
            .last()
            .is_some_and(|(_, requested)| *requested > refused)
        {
            return CallOutcome::SignedOut;
        }
        let requested = Instant::now();
        let credentials = json!({"username": self.email, "password": self.password});
        let sign_in = Call::new("POST", "/user/auth").body(credentials);
        let (outcome, body) = client.call(&sign_in);
        if let CallOutcome::Unexpected(response) = outcome {
            return CallOutcome::Unexpected(format!("signing in again: {response}"));
        }
        let token = body.get("token").and_then(Value::as_str);
        tokens.extend(token.map(|token| (token.to_owned(), requested)));
        CallOutcome::SignedOut
    }

    fn current(&self) -> (String, Instant) {
        let current = lock(&self.tokens).last().cloned();
        current.unwrap_or_else(|| (String::new(), Instant::now()))
    }

    /// Checks that no process accepts a token that was requested before `revoked`. Returns the number of tokens.
    pub(crate) fn check_revoked(
        &self,
        processes: &[&Process],
        revoked: Instant,
        findings: &mut Vec<Finding>,
    ) -> usize {
        let tokens = lock(&self.tokens);
        let earlier = || tokens.iter().filter(|(_, requested)| *requested < revoked);
        for process in processes {
            for (token, _) in earlier() {
                if !holds_within(NOTICE_LIMIT, || process.refuses(token)) {
                    let name = &process.name;
                    let what = format!("a token from before a promotion is accepted by {name}");
                    findings.push(Finding::new(Violation::EarlierToken, "-", what));
                }
            }
        }
        earlier().count()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_gateway_problem_makes_the_outcome_unknown() {
        assert_eq!(outcome_of(200, &json!({})), CallOutcome::Succeeded);
        let unavailable = json!({"code": "bad-gateway"});
        assert_eq!(outcome_of(502, &unavailable), CallOutcome::Unknown);
        let resolved = json!({"code": "task-already-resolved", "taskStatus": "rejected"});
        assert_eq!(
            outcome_of(409, &resolved),
            CallOutcome::AlreadyResolved("rejected".into())
        );
        for status in [201, 302, 400, 401, 409, 429, 500, 501, 505] {
            let unexpected = CallOutcome::Unexpected(format!("{status} bad-gateway"));
            assert_eq!(outcome_of(status, &unavailable), unexpected);
        }
        assert_eq!(
            outcome_of(503, &Value::Null),
            CallOutcome::Unexpected("503".into())
        );
    }
}
