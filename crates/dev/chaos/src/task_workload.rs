//! Callers that create tasks, register webhooks and make decisions, without retries.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use chrono::{DateTime, SubsecRound as _, Utc};
use rand::{RngExt as _, rngs::StdRng, seq::IndexedRandom as _};
use rig::{client::Call, interrupt, sync::lock};
use serde_json::{Value, json};

use crate::history::{CallOutcome, Decision, History, Hook, Task};
use crate::one_shot_client::OneShotClient;
use crate::receiver::{Behaviour, Receiver};
use crate::signature::secret_of;
use crate::test_user::TestUser;
use crate::{creations, rng};

/// Concurrent callers. While all of them wait for responses, the load is lower than requested.
pub(crate) const CALLERS: usize = 64;
/// The maximum number of tasks in a run, because all of them are kept in memory.
const MAX_TASKS: u64 = 50_000;
const MAX_DECISION_DELAY: Duration = Duration::from_secs(2);
/// The percentage of tasks that two callers decide at the same time.
const RACE_PERCENT: u32 = 10;
/// The percentage of tasks that are left undecided, so that their webhooks are called at their due date.
const DUE_PERCENT: u32 = 15;
const MIN_DUE: Duration = Duration::from_secs(2);
const MAX_DUE: Duration = Duration::from_secs(12);

/// The state that all callers share.
pub(crate) struct TaskWorkload<'run> {
    profile: LoadProfile,
    /// When the next task starts.
    next: Mutex<Instant>,
    stopped: AtomicBool,
    client: &'run OneShotClient<'run>,
    pub(crate) creator: TestUser,
    pub(crate) approver: TestUser,
    receivers: &'run [Receiver],
    history: &'run History,
}

#[derive(Clone, Copy)]
pub(crate) struct LoadProfile {
    pub(crate) seed: u64,
    /// Tasks per second.
    pub(crate) rate: u32,
    /// Whether some tasks are left undecided, so that they are due.
    pub(crate) with_due: bool,
}

/// Limits the tasks per second so that a run of this duration has at most `MAX_TASKS`.
pub(crate) fn limit_rate(requested: u32, duration: Duration) -> u32 {
    let limit = MAX_TASKS / duration.as_secs().max(1);
    u32::try_from(limit)
        .unwrap_or(u32::MAX)
        .clamp(1, requested.max(1))
}

impl<'run> TaskWorkload<'run> {
    /// Signs the users up, with retries.
    pub(crate) fn new(
        profile: LoadProfile,
        client: &'run OneShotClient<'run>,
        gateway: &str,
        receivers: &'run [Receiver],
        history: &'run History,
    ) -> anyhow::Result<Self> {
        Ok(Self {
            profile,
            next: Mutex::new(Instant::now()),
            stopped: AtomicBool::new(false),
            client,
            creator: TestUser::sign_up(gateway, "creator")?,
            approver: TestUser::sign_up(gateway, "approver")?,
            receivers,
            history,
        })
    }

    pub(crate) fn stop(&self) {
        self.stopped.store(true, Ordering::Relaxed);
    }

    pub(crate) fn has_ended(&self) -> bool {
        interrupt::came() || self.stopped.load(Ordering::Relaxed)
    }

    /// Runs one caller until the load ends.
    pub(crate) fn run_caller(&self) {
        while self.await_start() {
            self.run_task(self.history.next_task.fetch_add(1, Ordering::Relaxed));
        }
    }

    /// Waits for the start of the next task, one caller after the other. Starts that all callers missed are skipped. Returns
    /// `false` when the load has ended.
    fn await_start(&self) -> bool {
        let mut next = lock(&self.next);
        let now = Instant::now();
        let start = (*next).max(now);
        if !self.has_ended() {
            thread::sleep(start - now);
        }
        *next = start + Duration::from_secs(1) / self.profile.rate;
        !self.has_ended()
    }

    fn run_task(&self, number: u64) {
        let mut rng = rng::for_subject(self.profile.seed, &format!("task {number}"));
        let is_due = rng.random_ratio(DUE_PERCENT, 100) && self.profile.with_due;
        let due = is_due.then(|| {
            // `decisionBy` has whole seconds.
            let due = Utc::now() + rng.random_range(MIN_DUE..=MAX_DUE);
            due.trunc_subsecs(0)
        });
        let request = without_null(json!({
            "title": format!("Task {number}"),
            "requester": self.creator.email,
            "approver": self.approver.email,
            "decisionBy": due.map(|due| due.to_rfc3339()),
        }));
        let key = format!("{}-{number}", self.profile.seed);
        let created = creations::create(self.client, &self.creator, key, request);
        let (id, creation) = match created {
            Ok(created) => created,
            Err(outcome) => return lock(&self.history.uncreated).push(outcome),
        };
        let hooks = (0..rng.random_range(1..=3))
            .map(|index| self.register(&id, format!("{number}-{index}"), due, &mut rng))
            .collect();
        let decisions = if due.is_some() {
            Vec::new()
        } else {
            thread::sleep(rng.random_range(Duration::ZERO..=MAX_DECISION_DELAY));
            self.decide(&id, &creation.secret, &mut rng)
        };
        lock(&self.history.tasks).push(Task {
            id,
            creation,
            due,
            hooks,
            decisions,
        });
    }

    fn register(
        &self,
        task: &str,
        key: String,
        due: Option<DateTime<Utc>>,
        rng: &mut StdRng,
    ) -> Hook {
        let receiver = self.receivers.choose(rng);
        let url = receiver.map_or_else(String::new, |receiver| receiver.url(&key));
        let body = json!({
            "taskId": task,
            "url": url,
            "secret": secret_of(self.profile.seed, &key),
            "events": due.map(|_| ["due"]),
        });
        let call = Call::new("POST", "/people-task/webhooks").body(without_null(body));
        let gone = receiver.is_some_and(|receiver| receiver.handler.is_gone(&key));
        Hook {
            key,
            outcome: self.creator.call(self.client, call).0,
            fast: receiver.is_some_and(|one| one.handler.behaviour == Behaviour::Fast),
            gone,
        }
    }

    fn decide(&self, task: &str, secret: &str, rng: &mut StdRng) -> Vec<Decision> {
        let mut verbs = [("reject", "rejected"), ("approve", "approved")];
        if rng.random_bool(0.5) {
            verbs.reverse();
        }
        let [first, second] = verbs.map(|(verb, requested)| {
            let path = format!("/people-task/tasks/{task}/{verb}");
            let (path, user) = match rng.random_range(0..3) {
                0 => (format!("{path}?secret={secret}"), None),
                1 => (path, Some(&self.approver)),
                _ => (path, Some(&self.creator)),
            };
            (Call::new("PUT", path), user, requested)
        });
        let decide = |(call, user, requested): (Call<'_>, Option<&TestUser>, &'static str)| {
            let (outcome, body) = match user {
                Some(user) => user.call(self.client, call),
                None => self.client.call(&call),
            };
            let reported = body.get("status").and_then(Value::as_str);
            let outcome = match outcome {
                CallOutcome::Succeeded if reported != Some(requested) => CallOutcome::Unexpected(
                    format!("200 for {requested}, and the body has {reported:?}"),
                ),
                other => other,
            };
            Decision {
                requested,
                outcome,
                at: Instant::now(),
            }
        };
        if !rng.random_ratio(RACE_PERCENT, 100) {
            return vec![decide(first)];
        }
        thread::scope(|scope| {
            let other = scope.spawn(|| decide(second));
            let mut decisions = vec![decide(first)];
            decisions.extend(other.join());
            decisions
        })
    }
}

fn without_null(mut body: Value) -> Value {
    if let Some(members) = body.as_object_mut() {
        members.retain(|_, value| !value.is_null());
    }
    body
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_run_has_a_lower_rate() {
        assert_eq!(limit_rate(10, Duration::from_secs(600)), 10);
        assert_eq!(limit_rate(1000, Duration::from_secs(500)), 100);
        assert_eq!(limit_rate(10, Duration::from_secs(86_400)), 1);
    }
}
