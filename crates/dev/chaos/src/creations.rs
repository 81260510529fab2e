//! Creations of tasks: each has an `Idempotency-Key`, with which it is repeated while its outcome is unknown. Whatever was
//! killed meanwhile, there must be one task for a key, and the answer must stay the same.

use std::{
    collections::HashMap,
    sync::Mutex,
    thread,
    time::{Duration, Instant},
};

use rig::{
    client::{Call, Client},
    sync::lock,
};
use serde_json::Value;

use crate::{
    history::{CallOutcome, Finding, Violation},
    one_shot_client::OneShotClient,
    test_user::TestUser,
};

const PATH: &str = "/people-task/tasks";
/// How long a creation is repeated.
const LIMIT: Duration = Duration::from_secs(30);
const PAUSE: Duration = Duration::from_millis(300);
/// How many answers are asked for again at the end.
const REPEATED: usize = 200;
/// Tasks of a page of the list.
const PAGE: usize = 500;

/// A creation that succeeded.
#[derive(Debug, Clone)]
struct Creation {
    key: String,
    request: Value,
    id: String,
    secret: String,
}

/// The creations of a run that succeeded.
#[derive(Debug, Default)]
pub(crate) struct Creations(Mutex<Vec<Creation>>);

impl Creations {
    /// Creates a task, and repeats the call while its outcome is unknown. Returns the last outcome and answer.
    pub(crate) fn create(
        &self,
        client: &OneShotClient<'_>,
        creator: &TestUser,
        key: &str,
        request: &Value,
        number: u64,
    ) -> (CallOutcome, Value) {
        let end = Instant::now() + LIMIT;
        let mut gateway = number;
        loop {
            let call = Call::new("POST", PATH).body(request.clone());
            let call = call.header("Idempotency-Key", key.to_owned());
            let (outcome, body) = creator.call(client, call, gateway);
            let in_use = CallOutcome::Unexpected("409 idempotency-key-in-use".to_owned());
            let is_unknown = outcome == CallOutcome::Unknown || outcome == in_use;
            if !is_unknown || Instant::now() > end {
                self.record(key, request, &outcome, &body);
                return (outcome, body);
            }
            thread::sleep(PAUSE);
            gateway += 1;
        }
    }

    fn record(&self, key: &str, request: &Value, outcome: &CallOutcome, body: &Value) {
        let field = |name: &str| body.get(name).and_then(Value::as_str).map(str::to_owned);
        if let (CallOutcome::Succeeded, Some(id), Some(secret)) =
            (outcome, field("id"), field("approverSecret"))
        {
            lock(&self.0).push(Creation {
                key: key.to_owned(),
                request: request.clone(),
                id,
                secret,
            });
        }
    }

    /// Asks for answers again, and looks for tasks that were created twice. Every task has a title of its own.
    pub(crate) fn check(&self, gateway: &str, creator: &TestUser) -> anyhow::Result<Vec<Finding>> {
        let client = Client::new(gateway);
        let token = creator.token();
        let mut findings = Vec::new();
        for creation in lock(&self.0).iter().rev().take(REPEATED) {
            let call = Call::new("POST", PATH).body(creation.request.clone());
            let call = call.header("Idempotency-Key", creation.key.clone());
            let answer = client.call(&call.token(&token))?.expect(200)?;
            let same = answer.text("/id")? == creation.id
                && answer.text("/approverSecret")? == creation.secret;
            if !same {
                let what = "was created again by a repeat of its request";
                findings.push(Finding::new(Violation::Lost, &creation.id, what));
            }
        }
        for (title, count) in count_titles(&client, &token)? {
            if count > 1 {
                let what = format!("{title:?} was created {count} times");
                findings.push(Finding::new(Violation::Phantom, "-", what));
            }
        }
        Ok(findings)
    }
}

/// How many tasks of the creator have each title.
fn count_titles(client: &Client, token: &str) -> anyhow::Result<HashMap<String, usize>> {
    let mut titles = HashMap::new();
    for offset in (0..).step_by(PAGE) {
        let path = format!("{PATH}?role=creator&sort=created:1&limit={PAGE}&offset={offset}");
        let list = client
            .call(&Call::new("GET", path).token(token))?
            .expect(200)?;
        let tasks = list.body.as_array().cloned().unwrap_or_default();
        for task in &tasks {
            let title = task
                .get("title")
                .and_then(Value::as_str)
                .unwrap_or_default();
            *titles.entry(title.to_owned()).or_default() += 1;
        }
        if tasks.is_empty() {
            break;
        }
    }
    Ok(titles)
}
