//! A user who does what users do, at a steady rate.

use std::net::SocketAddr;
use std::time::Duration;

use anyhow::{Context as _, Result};
use rig::Person;
use serde_json::{Value, json};
use tokio::time::{Instant, sleep_until};

use crate::http::{Connection, request};

/// 20 calls a second, one after the other.
const CALL_INTERVAL: Duration = Duration::from_millis(50);
const SIGN_IN_INTERVAL: Duration = Duration::from_secs(5);
/// How long after a phase its late calls are still made.
const MAX_DELAY: Duration = Duration::from_secs(60);
/// The call that takes longer than the others, because a password is hashed.
pub(super) const SIGN_IN: &str = "sign-in";
const TASKS: &str = "/people-task/tasks";

/// What the user saw in one phase. A failed call may be fast or end with a timeout, and neither is a duration.
#[derive(Debug, Default)]
pub(super) struct Observed {
    pub(super) calls: Vec<(&'static str, Duration)>,
    pub(super) failures: Vec<String>,
}

impl Observed {
    pub(super) fn record(&mut self, call: &'static str, took: Duration, result: Result<()>) {
        match result {
            Ok(()) => self.calls.push((call, took)),
            Err(error) => self.failures.push(format!("{call}: {error:#}")),
        }
    }
}

pub(super) struct NormalUser {
    person: Person,
    working: Connection,
    signing_in: Connection,
    /// The task that the user works on. `None` after a failed creation.
    task: Option<String>,
}

impl NormalUser {
    pub(super) async fn connect(gateway: SocketAddr, person: Person) -> Result<Self> {
        Ok(Self {
            person,
            working: Connection::open(gateway).await?,
            signing_in: Connection::open(gateway).await?,
            task: None,
        })
    }

    /// Works for `duration`, and signs in now and then meanwhile.
    pub(super) async fn work(&mut self, duration: Duration) -> Observed {
        let credentials = json!({"username": self.person.email, "password": self.person.password});
        let sign_in = request("POST", "/user/auth", None, Some(&credentials));
        let (person, working, task) = (&self.person, &mut self.working, &mut self.task);
        let names = ["create", "account", "read", "list", "approve"];
        let mut names = names.into_iter().cycle();
        let work = async || {
            let name = names.next()?;
            // The failed creation is already counted.
            let bytes = call(name, person, task.as_deref())?;
            let response = working.call(&bytes).await;
            let body = response.and_then(|response| response.json());
            if name == "create" {
                let id = |body: &Value| Some(body.get("id")?.as_str()?.to_owned());
                *task = body.as_ref().ok().and_then(id);
            }
            Some((name, body.map(drop)))
        };
        let signing_in = &mut self.signing_in;
        let sign_in_again = async || {
            let response = signing_in.call(&sign_in).await.context("signing in");
            let signed_in = response.and_then(|response| response.json());
            Some((SIGN_IN, signed_in.map(drop)))
        };
        let (mut observed, signed_in) = tokio::join!(
            repeat(CALL_INTERVAL, duration, MAX_DELAY, work),
            repeat(SIGN_IN_INTERVAL, duration, MAX_DELAY, sign_in_again)
        );
        observed.calls.extend(signed_in.calls);
        observed.failures.extend(signed_in.failures);
        observed
    }
}

/// Makes a call every `interval` until `duration` has passed, one after the other. `call` returns its name and its result,
/// or nothing if it cannot be made.
///
/// A slow call delays the next ones and does not cancel them. Because durations count from the due time, a stall shows in
/// every call that it delays. Calls that would be made more than `max_delay` after the end have failed.
async fn repeat(
    interval: Duration,
    duration: Duration,
    max_delay: Duration,
    mut call: impl AsyncFnMut() -> Option<(&'static str, Result<()>)>,
) -> Observed {
    let mut observed = Observed::default();
    let mut due = Instant::now();
    let end = due + duration;
    while due < end {
        if Instant::now() < end + max_delay {
            sleep_until(due).await;
            if let Some((name, result)) = call().await {
                observed.record(name, due.elapsed(), result);
            }
        } else {
            let missed = anyhow::anyhow!("not made, because earlier calls took too long");
            observed.record("a call", Duration::ZERO, Err(missed));
        }
        due += interval;
    }
    observed
}

/// The request of a call, unless it needs a task and there is none.
fn call(name: &str, person: &Person, task: Option<&str>) -> Option<Vec<u8>> {
    let email = &person.email;
    let (method, path, body) = match name {
        "account" => ("GET", "/user".to_owned(), None),
        "create" => {
            let task = json!({"title": "Normal", "requester": email, "approver": email});
            ("POST", TASKS.to_owned(), Some(task))
        }
        "read" => ("GET", format!("{TASKS}/{}", task?), None),
        "list" => ("GET", format!("{TASKS}?limit=10"), None),
        _ => ("PUT", format!("{TASKS}/{}/approve", task?), None),
    };
    Some(request(method, &path, Some(&person.token), body.as_ref()))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::{Observed, repeat};

    const INTERVAL: Duration = Duration::from_millis(5);
    const PHASE: Duration = Duration::from_millis(100);

    /// Makes twenty calls, the first of which takes longer than the phase.
    async fn stall(max_delay: Duration) -> Observed {
        let mut stalls = [2 * PHASE].into_iter();
        let call = async || {
            tokio::time::sleep(stalls.next().unwrap_or_default()).await;
            Some(("read", Ok(())))
        };
        repeat(INTERVAL, PHASE, max_delay, call).await
    }

    #[tokio::test]
    async fn a_stall_delays_calls_and_cancels_none() {
        let observed = stall(100 * PHASE).await;
        assert_eq!((observed.calls.len(), observed.failures.len()), (20, 0));
        for (number, (_, took)) in (0..).zip(&observed.calls) {
            assert!(*took >= 2 * PHASE - number * INTERVAL, "{number}: {took:?}");
        }
    }

    #[tokio::test]
    async fn calls_that_are_never_made_have_failed() {
        let observed = stall(Duration::ZERO).await;
        assert_eq!((observed.calls.len(), observed.failures.len()), (1, 19));
    }
}
