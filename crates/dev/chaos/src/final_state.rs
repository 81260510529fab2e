//! The final state of tasks and webhooks, read when the system is ready again.

use std::collections::HashMap;
use std::sync::Mutex;
use std::thread;
use std::time::{Duration, Instant};

use rig::{Call, Client, interrupt, join, key_of, lock};
use serde_json::Value;

use crate::callers::TestUser;
use crate::history::{CallOutcome, Decision, History, Hook, Task};

/// Between two reads of unsettled tasks.
const POLL_INTERVAL: Duration = Duration::from_millis(500);
/// How long late decisions may take to appear.
const GRACE: Duration = Duration::from_secs(2);
const READERS: usize = 6;

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct FinalState {
    /// `None` if the task does not exist.
    pub(crate) status: Option<String>,
    /// The status of each webhook, by its key.
    pub(crate) hooks: HashMap<String, String>,
    /// How many refusals by its receiver are recorded for each webhook, by its key.
    pub(crate) refusals: HashMap<String, usize>,
}

pub(crate) type FinalStates = HashMap<String, FinalState>;

impl FinalState {
    fn load(client: &Client, user: &TestUser, id: &str) -> anyhow::Result<Self> {
        let path = format!("/people-task/tasks/{id}");
        let token = user.token();
        let response = client.call(&Call::new("GET", path.as_str()).token(&token))?;
        if response.status == 404 {
            return Ok(Self::default());
        }
        let status = response.expect(200)?.text("/status")?.to_owned();
        let hooks = client.get(&format!("{path}/webhooks"), &token)?.body;
        let deliveries = client.get(&format!("{path}/deliveries"), &token)?.body;
        let items = |list: Value| list.as_array().cloned().unwrap_or_default();
        Ok(Self {
            status: Some(status),
            hooks: items(hooks).iter().filter_map(hook).collect(),
            refusals: items(deliveries).iter().filter_map(refusals).collect(),
        })
    }

    pub(crate) fn is_decided(&self) -> bool {
        matches!(self.status.as_deref(), Some("approved" | "rejected"))
    }

    /// Whether the task and its webhooks can no longer change.
    fn is_settled(&self, task: &Task, history: &History) -> bool {
        let known = |hook: &Hook| self.hooks.contains_key(&hook.key);
        let registered = |hook: &&Hook| hook.outcome == CallOutcome::Succeeded;
        if task.due.is_some() {
            // Every webhook has been called.
            let has_arrived = |key: &str| lock(&history.arrivals).contains_key(key);
            let is_called = |hook: &Hook| {
                history.is_delivered(&hook.key) || (hook.gone && has_arrived(&hook.key))
            };
            let expected = |hook: &&Hook| registered(hook) || known(hook);
            return task.hooks.iter().filter(expected).all(is_called);
        }
        if !self.is_decided() {
            let succeeded = |one: &Decision| one.outcome == CallOutcome::Succeeded;
            return !task.decisions.iter().any(succeeded);
        }
        // A webhook that failed is never sent again.
        let finished = |(key, status): (&String, &String)| match status.as_str() {
            "sent" => history.is_delivered(key),
            other => other == "fail",
        };
        let mut expected = task.hooks.iter().filter(registered);
        self.hooks.iter().all(finished) && expected.all(known)
    }
}

/// The key and status of a webhook.
fn hook(hook: &Value) -> Option<(String, String)> {
    let field = |name: &str| hook.get(name).and_then(Value::as_str);
    let key = key_of(field("url")?).to_owned();
    Some((key, field("status")?.to_owned()))
}

/// The key of a delivery's webhook, and how many of its attempts were refused by the receiver.
fn refusals(delivery: &Value) -> Option<(String, usize)> {
    let url = delivery.get("url").and_then(Value::as_str)?;
    let attempts = delivery.get("attempts").and_then(Value::as_array)?;
    let status = |attempt: &&Value| attempt.get("statusCode").and_then(Value::as_u64);
    let refused = attempts
        .iter()
        .filter(|attempt| status(attempt).is_some_and(|code| code >= 300));
    Some((key_of(url).to_owned(), refused.count()))
}

/// Reads through the gateway until every task is settled, but not after `end`.
pub(crate) fn wait_settled(
    client: &Client,
    user: &TestUser,
    history: &History,
    tasks: &[Task],
    end: Instant,
) -> anyhow::Result<FinalStates> {
    let mut states = load(client, user, tasks.iter())?;
    loop {
        let is_open = |states: &FinalStates, task: &Task| {
            let state = states.get(&task.id);
            !state.is_some_and(|state| state.is_settled(task, history))
        };
        let open = tasks.iter().filter(|task| is_open(&states, task));
        let open: Vec<_> = open.collect();
        if open.is_empty() {
            // A decision whose caller gave up may still be made.
            thread::sleep(GRACE);
            let undecided =
                |task: &&Task| !states.get(&task.id).is_some_and(FinalState::is_decided);
            states.extend(load(client, user, tasks.iter().filter(undecided))?);
            if !tasks.iter().any(|task| is_open(&states, task)) {
                return Ok(states);
            }
        } else if Instant::now() > end {
            return Ok(states);
        } else {
            thread::sleep(POLL_INTERVAL);
            states.extend(load(client, user, open.into_iter())?);
        }
    }
}

fn load<'task>(
    client: &Client,
    user: &TestUser,
    tasks: impl Iterator<Item = &'task Task> + Send,
) -> anyhow::Result<FinalStates> {
    let tasks = Mutex::new(tasks);
    let next = || lock(&tasks).next();
    let read = || {
        let mut states = FinalStates::new();
        while let Some(task) = next() {
            interrupt::check()?;
            let state = FinalState::load(client, user, &task.id)?;
            states.insert(task.id.clone(), state);
        }
        anyhow::Ok(states)
    };
    thread::scope(|scope| {
        let readers: Vec<_> = (0..READERS).map(|_| scope.spawn(read)).collect();
        let mut all = FinalStates::new();
        for reader in readers {
            all.extend(join(reader)??);
        }
        Ok(all)
    })
}
