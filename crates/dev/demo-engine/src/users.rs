//! Sample data of users, to be erased.

use std::collections::{HashMap, VecDeque};
use std::time::{Duration, Instant};

use chrono::{SecondsFormat, Utc};
use indexmap::IndexMap;
use serde::Serialize;

const MAX_USERS: usize = 10_000;
const MAX_CALLS_PER_USER: usize = 100;

/// One of the five erasure calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Step {
    StopFlows,
    Flows,
    Logs,
    Accounts,
    Tokens,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Counts {
    running_flows: u32,
    flows: u32,
    logs: u32,
    accounts: u32,
    tokens: u32,
}

impl Counts {
    /// Returns counts that depend only on the id.
    fn sample_for(id: &str) -> Self {
        let seed = id.bytes().fold(0u32, |sum, byte| {
            sum.wrapping_mul(31).wrapping_add(byte.into())
        });
        let flows = 2 + seed % 4;
        Self {
            running_flows: 1 + seed % flows,
            flows,
            logs: 20 + seed % 80,
            accounts: 1 + seed % 3,
            tokens: 1 + seed % 5,
        }
    }

    /// Erases the data of a step. Returns how many items were erased.
    fn erase(&mut self, step: Step) -> u32 {
        match step {
            Step::StopFlows => std::mem::take(&mut self.running_flows),
            Step::Flows => {
                self.running_flows = 0;
                std::mem::take(&mut self.flows)
            }
            Step::Logs => std::mem::take(&mut self.logs),
            Step::Accounts => std::mem::take(&mut self.accounts),
            Step::Tokens => std::mem::take(&mut self.tokens),
        }
    }
}

#[derive(Debug, Clone, Serialize)]
pub(crate) struct Call {
    at: String,
    step: Step,
    status: u16,
}

#[derive(Debug, Clone, Serialize)]
pub(crate) struct User {
    id: String,
    #[serde(flatten)]
    counts: Counts,
    /// The latest erasure calls, newest last.
    calls: VecDeque<Call>,
    #[serde(skip)]
    failures: HashMap<Step, u32>,
    #[serde(skip)]
    accepted: HashMap<Step, Instant>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// The call fails, as configured.
    Failed,
    /// The engine is still working, for about this time.
    Working(Duration),
    /// The number of erased items.
    Done(u32),
}

impl User {
    fn new(id: &str) -> Self {
        Self {
            id: id.to_owned(),
            counts: Counts::sample_for(id),
            calls: VecDeque::new(),
            failures: HashMap::new(),
            accepted: HashMap::new(),
        }
    }

    /// Performs a call. The first `fail` calls of each step fail, and the step is done when `accepted` has passed.
    pub(crate) fn erase(&mut self, step: Step, fail: u32, accepted: Duration) -> Outcome {
        let failures = self.failures.entry(step).or_default();
        if *failures < fail {
            *failures += 1;
            return Outcome::Failed;
        }
        let since = self.accepted.entry(step).or_insert_with(Instant::now);
        let left = accepted.saturating_sub(since.elapsed());
        if left.is_zero() {
            Outcome::Done(self.counts.erase(step))
        } else {
            Outcome::Working(left)
        }
    }

    pub(crate) fn record_call(&mut self, step: Step, status: u16) {
        let at = Utc::now().to_rfc3339_opts(SecondsFormat::Millis, true);
        self.calls.push_back(Call { at, step, status });
        if self.calls.len() > MAX_CALLS_PER_USER {
            self.calls.pop_front();
        }
    }
}

/// The users, created at their first call, the oldest first.
#[derive(Default)]
pub(crate) struct Users(IndexMap<String, User>);

impl Users {
    pub(crate) fn get(&mut self, id: &str) -> &mut User {
        if self.0.len() >= MAX_USERS && !self.0.contains_key(id) {
            self.0.shift_remove_index(0);
        }
        self.0.entry(id.to_owned()).or_insert_with(|| User::new(id))
    }

    pub(crate) fn reset_failures(&mut self) {
        for user in self.0.values_mut() {
            user.failures.clear();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_user_has_data_of_every_kind() {
        for id in ["a", "0123456789abcdef01234567", "ffffffffffffffffffffffff"] {
            let counts = Counts::sample_for(id);
            assert!(counts.running_flows > 0 && counts.running_flows <= counts.flows);
            assert!(counts.logs > 0 && counts.accounts > 0 && counts.tokens > 0);
        }
    }

    #[test]
    fn a_call_fails_then_is_accepted_then_is_done_once() {
        let mut user = User::new("a");
        let accepted = Duration::from_millis(20);
        assert_eq!(user.erase(Step::Logs, 1, accepted), Outcome::Failed);
        let working = user.erase(Step::Logs, 1, accepted);
        assert!(matches!(working, Outcome::Working(left) if left <= accepted));
        std::thread::sleep(accepted);
        assert!(matches!(user.erase(Step::Logs, 1, accepted), Outcome::Done(n) if n > 0));
        assert_eq!(user.erase(Step::Logs, 1, accepted), Outcome::Done(0));
    }

    #[test]
    fn the_number_of_users_is_limited() {
        let mut users = Users::default();
        for number in 0..=MAX_USERS {
            users.get(&number.to_string());
        }
        assert_eq!(users.0.len(), MAX_USERS);
    }
}
