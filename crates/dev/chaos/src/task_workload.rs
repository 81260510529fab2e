//! Callers that create tasks, register webhooks and make decisions, without retries. Only a creation is repeated while its
//! outcome is unknown, with the same `Idempotency-Key`. Whatever was killed meanwhile, there must be one task for a key, and
//! the answer must stay the same.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use chrono::{DateTime, SubsecRound as _, Utc};
use rand::{RngExt as _, rngs::StdRng, seq::IndexedRandom as _};
use rig::{Call, Client, interrupt, lock};
use serde_json::{Value, json};

use crate::callers::{OneShotClient, TestUser};
use crate::history::{CallOutcome, Creation, Decision, Finding, History, Hook, Task, Violation};
use crate::receiver::{Behaviour, Receiver};
use crate::rng;
use crate::signature::{Keys, secret_of};

const PATH: &str = "/people-task/tasks";
/// Concurrent callers. While all of them wait for responses, the load is lower than requested.
pub(crate) const CALLERS: usize = 64;
/// The maximum number of tasks in a run, because all of them are kept in memory.
const MAX_TASKS: u64 = 50_000;
const CREATION_LIMIT: Duration = Duration::from_secs(30);
const CREATION_PAUSE: Duration = Duration::from_millis(300);
/// How many creations are repeated at the end.
const REPEATED: usize = 200;
const PAGE: usize = 500;
const MAX_DECISION_DELAY: Duration = Duration::from_secs(2);
/// The percentage of tasks that two callers decide at the same time.
const RACE_PERCENT: u32 = 10;
/// The percentage of tasks that are left undecided, so that their webhooks are called at their due date.
const DUE_PERCENT: u32 = 15;
const MIN_DUE: Duration = Duration::from_secs(2);
const MAX_DUE: Duration = Duration::from_secs(12);

pub(crate) struct TaskWorkload<'run> {
    load: &'run Load<'run>,
    /// When the next task starts.
    next: Mutex<Instant>,
    stopped: AtomicBool,
    pub(crate) creator: TestUser,
    pub(crate) approver: TestUser,
}

/// The client of the callers, the receivers of their webhooks, and what both record.
pub(crate) struct Load<'run> {
    pub(crate) seed: u64,
    /// Tasks per second.
    pub(crate) rate: u32,
    /// Whether some tasks are left undecided, so that they are due.
    pub(crate) with_due: bool,
    pub(crate) client: OneShotClient<'run>,
    /// Receivers verify webhooks by them.
    pub(crate) keys: Keys,
    pub(crate) receivers: Vec<Receiver>,
    pub(crate) history: Arc<History>,
}

/// Limits the tasks per second so that a run of this duration has at most `MAX_TASKS`.
pub(crate) fn limit_rate(requested: u32, duration: Duration) -> u32 {
    let limit = MAX_TASKS / duration.as_secs().max(1);
    u32::try_from(limit)
        .unwrap_or(u32::MAX)
        .clamp(1, requested.max(1))
}

impl<'run> Load<'run> {
    pub(crate) fn open(
        seed: u64,
        rate: u32,
        with_due: bool,
        client: OneShotClient<'run>,
        behaviours: impl IntoIterator<Item = Behaviour>,
    ) -> anyhow::Result<Self> {
        let (keys, history) = (Keys::default(), Arc::default());
        keys.load(&client.repeating)?;
        let open = |(number, behaviour)| Receiver::open(number, behaviour, seed, &keys, &history);
        let receivers = (1..).zip(behaviours).map(open);
        Ok(Self {
            receivers: receivers.collect::<anyhow::Result<_>>()?,
            seed,
            rate,
            with_due,
            client,
            keys,
            history,
        })
    }
}

impl<'run> TaskWorkload<'run> {
    pub(crate) fn new(load: &'run Load<'run>) -> anyhow::Result<Self> {
        let sign_up = |name| TestUser::new(|| load.client.repeating.sign_up_new(name));
        Ok(Self {
            load,
            next: Mutex::new(Instant::now()),
            stopped: AtomicBool::new(false),
            creator: sign_up("creator")?,
            approver: sign_up("approver")?,
        })
    }

    pub(crate) fn stop(&self) {
        self.stopped.store(true, Ordering::Relaxed);
    }

    pub(crate) fn has_ended(&self) -> bool {
        interrupt::came() || self.stopped.load(Ordering::Relaxed)
    }

    pub(crate) fn run_caller(&self) {
        while self.await_start() {
            self.run_task(self.load.history.next_task.fetch_add(1, Ordering::Relaxed));
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
        *next = start + Duration::from_secs(1) / self.load.rate;
        !self.has_ended()
    }

    fn run_task(&self, number: u64) {
        let mut rng = rng::for_subject(self.load.seed, &format!("task {number}"));
        let is_due = rng.random_ratio(DUE_PERCENT, 100) && self.load.with_due;
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
        let key = format!("{}-{number}", self.load.seed);
        let (id, creation) = match self.create(key, request) {
            Ok(created) => created,
            Err(outcome) => return lock(&self.load.history.uncreated).push(outcome),
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
        lock(&self.load.history.tasks).push(Task {
            id,
            creation,
            due,
            hooks,
            decisions,
        });
    }

    /// Creates a task. Returns its id, or the last outcome.
    fn create(&self, key: String, request: Value) -> Result<(String, Creation), CallOutcome> {
        let end = Instant::now() + CREATION_LIMIT;
        let in_use = CallOutcome::Unexpected("409 idempotency-key-in-use".to_owned());
        loop {
            let call = creation_call(&key, &request);
            let (outcome, body) = self.creator.call(&self.load.client, call);
            let is_unknown = outcome == CallOutcome::Unknown || outcome == in_use;
            if is_unknown && Instant::now() <= end {
                thread::sleep(CREATION_PAUSE);
                continue;
            }
            let field = |name: &str| body.get(name).and_then(Value::as_str).map(str::to_owned);
            return match (outcome, field("id"), field("approverSecret")) {
                (CallOutcome::Succeeded, Some(id), Some(secret)) => {
                    let creation = Creation {
                        key,
                        request,
                        secret,
                    };
                    Ok((id, creation))
                }
                (CallOutcome::Succeeded, ..) => Err(CallOutcome::Unexpected(
                    "200 without id and secret".to_owned(),
                )),
                (other, ..) => Err(other),
            };
        }
    }

    fn register(
        &self,
        task: &str,
        key: String,
        due: Option<DateTime<Utc>>,
        rng: &mut StdRng,
    ) -> Hook {
        let receiver = self.load.receivers.choose(rng);
        let url = receiver.map_or_else(String::new, |receiver| receiver.url(&key));
        let body = json!({
            "taskId": task,
            "url": url,
            "secret": secret_of(self.load.seed, &key),
            "events": due.map(|_| ["due"]),
        });
        let call = Call::new("POST", "/people-task/webhooks").body(without_null(body));
        let gone = receiver.is_some_and(|receiver| receiver.handler.is_gone(&key));
        Hook {
            key,
            outcome: self.creator.call(&self.load.client, call).0,
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
            let path = format!("{PATH}/{task}/{verb}");
            let (path, user) = match rng.random_range(0..3) {
                0 => (format!("{path}?secret={secret}"), None),
                1 => (path, Some(&self.approver)),
                _ => (path, Some(&self.creator)),
            };
            (Call::new("PUT", path), user, requested)
        });
        let decide = |(call, user, requested): (Call<'_>, Option<&TestUser>, &'static str)| {
            let (outcome, body) = match user {
                Some(user) => user.call(&self.load.client, call),
                None => self.load.client.call(&call),
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

    /// Looks for unexpected answers to creations, repeats creations, and looks for tasks that were created twice. Every
    /// task has a title of its own.
    pub(crate) fn check_creations(&self) -> anyhow::Result<Vec<Finding>> {
        let client = &self.load.client.repeating;
        let token = self.creator.token();
        let mut findings = self.load.history.unexpected_creations();
        for task in lock(&self.load.history.tasks).iter().rev().take(REPEATED) {
            let creation = &task.creation;
            let again = creation_call(&creation.key, &creation.request).token(&token);
            let answer = client.call(&again)?.expect(200)?;
            let secret = answer.text("/approverSecret")?;
            if answer.text("/id")? != task.id || secret != creation.secret {
                let what = "was created again by a repeat of its request";
                findings.push(Finding::new(Violation::Lost, &task.id, what));
            }
        }
        for (title, count) in count_titles(client, &token)? {
            if count > 1 {
                let what = format!("{title:?} was created {count} times");
                findings.push(Finding::new(Violation::Phantom, "-", what));
            }
        }
        Ok(findings)
    }
}

/// The call that creates a task, or that asks for the answer again.
fn creation_call(key: &str, request: &Value) -> Call<'static> {
    let call = Call::new("POST", PATH).body(request.clone());
    call.header("Idempotency-Key", key.to_owned())
}

fn without_null(mut body: Value) -> Value {
    if let Some(members) = body.as_object_mut() {
        members.retain(|_, value| !value.is_null());
    }
    body
}

fn count_titles(client: &Client, token: &str) -> anyhow::Result<HashMap<String, usize>> {
    let mut titles = HashMap::new();
    for offset in (0..).step_by(PAGE) {
        let path = format!("{PATH}?role=creator&sort=created:1&limit={PAGE}&offset={offset}");
        let list = client.get(&path, token)?.body;
        let tasks = list.as_array().map(Vec::as_slice).unwrap_or_default();
        for task in tasks {
            let title = task.get("title").and_then(Value::as_str);
            *titles
                .entry(title.unwrap_or_default().to_owned())
                .or_default() += 1;
        }
        if tasks.is_empty() {
            break;
        }
    }
    Ok(titles)
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
