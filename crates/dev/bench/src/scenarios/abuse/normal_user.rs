//! A user who does what users do, at a steady rate.

use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use anyhow::Context as _;
use rig::client::Person;
use serde_json::{Value, json};
use tokio::time::{Instant, sleep_until};

use crate::http::connection::{Connection, request};

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
    pub(super) fn record(
        &mut self,
        call: &'static str,
        took: Duration,
        result: anyhow::Result<()>,
    ) {
        match result {
            Ok(()) => self.calls.push((call, took)),
            Err(error) => self.failures.push(format!("{call}: {error:#}")),
        }
    }
}

/// The user, with one connection to work and one to sign in.
pub(super) struct NormalUser {
    person: Person,
    working: Connection,
    signing_in: Connection,
    /// The task that the user works on. `None` after a failed creation.
    task: Option<String>,
}

impl NormalUser {
    pub(super) async fn connect(
        gateway: SocketAddr,
        local: Ipv4Addr,
        person: Person,
    ) -> anyhow::Result<Self> {
        Ok(Self {
            person,
            working: Connection::open_from(local, gateway).await?,
            signing_in: Connection::open_from(local, gateway).await?,
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
            let body = working
                .call(&bytes)
                .await
                .and_then(|response| response.json());
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
            repeat("work", CALL_INTERVAL, duration, work),
            repeat(SIGN_IN, SIGN_IN_INTERVAL, duration, sign_in_again)
        );
        observed.calls.extend(signed_in.calls);
        observed.failures.extend(signed_in.failures);
        observed
    }
}

/// Makes calls until `duration` has passed. `call` returns its name and its result, or nothing if it cannot be made.
async fn repeat(
    missed: &'static str,
    interval: Duration,
    duration: Duration,
    mut call: impl AsyncFnMut() -> Option<(&'static str, anyhow::Result<()>)>,
) -> Observed {
    let mut observed = Observed::default();
    let mut schedule = Schedule::new(interval, duration);
    while let Some(due) = schedule.next().await {
        if let Some((name, result)) = call().await {
            observed.record(name, due.elapsed(), result);
        }
    }
    schedule.record_missed(missed, &mut observed);
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

/// The times at which calls are due. A slow call delays the next ones and does not cancel them. Because durations
/// count from the due time, a stall shows in every call that it delays.
struct Schedule {
    next: Instant,
    interval: Duration,
    end: Instant,
}

impl Schedule {
    fn new(interval: Duration, duration: Duration) -> Self {
        let next = Instant::now();
        Self {
            next,
            interval,
            end: next + duration,
        }
    }

    /// Waits for the next due time, and returns it. `None` at the end, or if the calls are too late.
    async fn next(&mut self) -> Option<Instant> {
        let due = self.due(Instant::now())?;
        sleep_until(due).await;
        Some(due)
    }

    fn due(&mut self, now: Instant) -> Option<Instant> {
        let due = self.next;
        if due >= self.end || now >= self.end + MAX_DELAY {
            return None;
        }
        self.next += self.interval;
        Some(due)
    }

    /// Counts the calls that were never made as failed.
    fn record_missed(&self, call: &'static str, observed: &mut Observed) {
        let mut due = self.next;
        while due < self.end {
            let missed = anyhow::anyhow!("not made, because earlier calls took too long");
            observed.record(call, Duration::ZERO, Err(missed));
            due += self.interval;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::{CALL_INTERVAL, MAX_DELAY, Observed, Schedule};

    const PHASE: Duration = Duration::from_secs(1);

    #[test]
    fn a_stall_delays_calls_and_cancels_none() {
        let mut schedule = Schedule::new(CALL_INTERVAL, PHASE);
        let start = schedule.next;
        assert_eq!(schedule.due(start), Some(start));
        let late = start + PHASE;
        let due = std::iter::from_fn(|| schedule.due(late));
        let expected = (1..20).map(|n| start + n * CALL_INTERVAL);
        assert!(due.eq(expected));
    }

    #[test]
    fn calls_that_are_never_made_have_failed() {
        let mut schedule = Schedule::new(CALL_INTERVAL, PHASE);
        let start = schedule.next;
        assert_eq!(schedule.due(start), Some(start));
        assert_eq!(schedule.due(start + PHASE + MAX_DELAY), None);
        let mut observed = Observed::default();
        schedule.record_missed("work", &mut observed);
        assert_eq!(observed.failures.len(), 19);
    }
}
