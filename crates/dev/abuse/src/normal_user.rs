//! A user who does what users do, at a steady rate.

use std::time::Duration;

use anyhow::Context as _;
use reqwest::Method;
use serde_json::{Value, json};
use tokio::time::{Instant, sleep_until};

use crate::client::{Client, text};
use crate::latencies::{Latencies, SIGN_IN};

/// 20 calls a second, one after the other.
const CALL_INTERVAL: Duration = Duration::from_millis(50);
const SIGN_IN_INTERVAL: Duration = Duration::from_secs(5);
const WARM_UP: Duration = Duration::from_secs(3);
/// How long after a phase its late calls are still made.
const MAX_DELAY: Duration = Duration::from_secs(60);

/// The user and the task that it is working on.
#[derive(Debug)]
pub(crate) struct NormalUser {
    client: Client,
    /// `None` after a failed creation.
    task: Option<String>,
}

impl NormalUser {
    /// A user with one task.
    pub(crate) async fn prepare(client: Client) -> anyhow::Result<Self> {
        let mut user = Self { client, task: None };
        user.create().await?;
        Ok(user)
    }

    /// Calls that open connections and fill caches, and are not measured.
    pub(crate) async fn warm_up(&mut self) -> anyhow::Result<()> {
        let failure = self.measure(WARM_UP).await.failure("warm-up");
        failure.map_or(Ok(()), |failure| Err(anyhow::anyhow!(failure)))
    }

    /// Works for `duration`, and signs in now and then meanwhile.
    pub(crate) async fn measure(&mut self, duration: Duration) -> Latencies {
        let mut signing_in = self.client.clone();
        let (mut latencies, sign_ins) =
            tokio::join!(self.work(duration), sign_in(&mut signing_in, duration));
        latencies.merge(sign_ins);
        self.client = signing_in;
        latencies
    }

    async fn work(&mut self, duration: Duration) -> Latencies {
        let mut latencies = Latencies::default();
        let mut schedule = Schedule::new(CALL_INTERVAL, duration);
        let mut calls = ["account", "create", "read", "list", "approve"]
            .into_iter()
            .cycle();
        while let (Some(scheduled), Some(call)) = (schedule.next().await, calls.next()) {
            let needs_task = matches!(call, "read" | "approve");
            if needs_task && self.task.is_none() {
                // The failed creation is already counted.
                continue;
            }
            let result = self.call(call).await;
            latencies.record(call, scheduled.elapsed(), result);
        }
        schedule.record_missed("work", &mut latencies);
        latencies
    }

    async fn call(&mut self, call: &str) -> anyhow::Result<()> {
        let task = self.task.as_deref().unwrap_or_default();
        let path = format!("/people-task/tasks/{task}");
        let client = &self.client;
        match call {
            "account" => client.json(Method::GET, "/user", None).await.map(drop),
            "create" => self.create().await,
            "read" => client.json(Method::GET, &path, None).await.map(drop),
            "list" => {
                let path = "/people-task/tasks?limit=10";
                client.json(Method::GET, path, None).await.map(drop)
            }
            _ => {
                let path = format!("{path}/approve");
                client.json(Method::PUT, &path, None).await.map(drop)
            }
        }
    }

    async fn create(&mut self) -> anyhow::Result<()> {
        self.task = None;
        let email = &self.client.email;
        let task: Value = json!({"title": "Normal", "requester": email, "approver": email});
        let created = self
            .client
            .json(Method::POST, "/people-task/tasks", Some(&task))
            .await
            .context("creating a task")?;
        self.task = Some(text(&created, "id")?.to_owned());
        Ok(())
    }
}

async fn sign_in(client: &mut Client, duration: Duration) -> Latencies {
    let mut latencies = Latencies::default();
    let mut schedule = Schedule::new(SIGN_IN_INTERVAL, duration);
    while let Some(scheduled) = schedule.next().await {
        let result = client.sign_in().await;
        latencies.record(SIGN_IN, scheduled.elapsed(), result);
    }
    schedule.record_missed(SIGN_IN, &mut latencies);
    latencies
}

/// The times at which calls are due. A slow call delays the next ones and does not cancel them. Because latencies
/// count from the due time, a stall shows in every call that it delays.
struct Schedule {
    next: Instant,
    interval: Duration,
    end: Instant,
}

impl Schedule {
    fn new(interval: Duration, duration: Duration) -> Self {
        let next = Instant::now();
        let end = next + duration;
        Self {
            next,
            interval,
            end,
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
    fn record_missed(&self, call: &'static str, latencies: &mut Latencies) {
        let mut due = self.next;
        while due < self.end {
            let missed = anyhow::anyhow!("not made, because earlier calls took too long");
            latencies.record(call, Duration::ZERO, Err(missed));
            due += self.interval;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::{CALL_INTERVAL, Latencies, MAX_DELAY, Schedule};

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
        let mut latencies = Latencies::default();
        schedule.record_missed("work", &mut latencies);
        let failure = latencies.failure("after").unwrap_or_default();
        assert!(failure.starts_with("after: 19 calls"), "{failure}");
    }
}
