//! Creations of tasks: each has an `Idempotency-Key`, with which it is repeated while its outcome is unknown. Whatever was
//! killed meanwhile, there must be one task for a key, and the answer must stay the same.

use std::collections::HashMap;
use std::thread;
use std::time::{Duration, Instant};

use rig::client::{Call, Client};
use rig::sync::lock;
use serde_json::Value;

use crate::history::{CallOutcome, Creation, Finding, History, Violation};
use crate::one_shot_client::OneShotClient;
use crate::test_user::TestUser;

const PATH: &str = "/people-task/tasks";
/// How long a creation is repeated.
const LIMIT: Duration = Duration::from_secs(30);
const PAUSE: Duration = Duration::from_millis(300);
/// How many answers are asked for again at the end.
const REPEATED: usize = 200;
/// Tasks of a page of the list.
const PAGE: usize = 500;

/// The call that creates a task, or that asks for the answer again.
fn call(key: &str, request: &Value) -> Call<'static> {
    let call = Call::new("POST", PATH).body(request.clone());
    call.header("Idempotency-Key", key.to_owned())
}

/// Creates a task, and repeats the call while its outcome is unknown. Returns its id, or the last outcome.
pub(crate) fn create(
    client: &OneShotClient<'_>,
    creator: &TestUser,
    key: String,
    request: Value,
) -> Result<(String, Creation), CallOutcome> {
    let end = Instant::now() + LIMIT;
    let in_use = CallOutcome::Unexpected("409 idempotency-key-in-use".to_owned());
    loop {
        let (outcome, body) = creator.call(client, call(&key, &request));
        let is_unknown = outcome == CallOutcome::Unknown || outcome == in_use;
        if is_unknown && Instant::now() <= end {
            thread::sleep(PAUSE);
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

/// Looks for unexpected answers, asks for answers again, and looks for tasks that were created twice. Every task has a title of
/// its own.
pub(crate) fn check(
    history: &History,
    gateway: &str,
    creator: &TestUser,
) -> anyhow::Result<Vec<Finding>> {
    let client = Client::new(gateway);
    let token = creator.token();
    let uncreated = lock(&history.uncreated);
    let unexpected = uncreated.iter().filter_map(CallOutcome::unexpected);
    let unexpected = unexpected.map(|response| format!("creating a task: {response}"));
    let mut findings: Vec<_> = Finding::of_run(Violation::UnexpectedResponse, unexpected).collect();
    for task in lock(&history.tasks).iter().rev().take(REPEATED) {
        let creation = &task.creation;
        let again = call(&creation.key, &creation.request).token(&token);
        let answer = client.call(&again)?.expect(200)?;
        let secret = answer.text("/approverSecret")?;
        if answer.text("/id")? != task.id || secret != creation.secret {
            let what = "was created again by a repeat of its request";
            findings.push(Finding::new(Violation::Lost, &task.id, what));
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

/// How many tasks of the creator have each title.
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
