//! A user who does what users do, at a steady rate.

use std::time::Duration;

use anyhow::Context as _;
use reqwest::Method;
use serde_json::{Value, json};
use tokio::time::{Instant, MissedTickBehavior, interval};

use crate::client::{Client, text};
use crate::latencies::Latencies;

/// One call after the other at this rate: 20 calls a second.
const CALL_INTERVAL: Duration = Duration::from_millis(50);
const SIGN_IN_INTERVAL: Duration = Duration::from_secs(5);
const WARM_UP: Duration = Duration::from_secs(3);

/// The user and the task that it is working on.
#[derive(Debug)]
pub(crate) struct NormalUser {
    client: Client,
    task: String,
}

impl NormalUser {
    /// A user with one task.
    pub(crate) async fn prepare(client: Client) -> anyhow::Result<Self> {
        let mut user = Self {
            client,
            task: String::new(),
        };
        user.create().await?;
        Ok(user)
    }

    /// Calls that open connections and fill caches, and are not measured.
    pub(crate) async fn warm_up(&mut self) -> anyhow::Result<()> {
        let failed = self.measure(WARM_UP).await.print("warm-up");
        failed.map_or(Ok(()), |failure| Err(anyhow::anyhow!(failure)))
    }

    /// Works for `duration`.
    pub(crate) async fn measure(&mut self, duration: Duration) -> Latencies {
        let mut latencies = Latencies::default();
        let end = Instant::now() + duration;
        let mut next_sign_in = Instant::now();
        let mut tick = interval(CALL_INTERVAL);
        tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut calls = ["account", "create", "read", "list", "approve"]
            .into_iter()
            .cycle();
        while Instant::now() < end {
            tick.tick().await;
            if Instant::now() >= next_sign_in {
                next_sign_in += SIGN_IN_INTERVAL;
                let started = Instant::now();
                let result = self.client.sign_in().await;
                latencies.record("sign-in", started.elapsed(), result);
            }
            let Some(call) = calls.next() else { break };
            let started = Instant::now();
            let result = self.call(call).await;
            latencies.record(call, started.elapsed(), result);
        }
        latencies
    }

    async fn call(&mut self, call: &str) -> anyhow::Result<()> {
        let path = format!("/people-task/tasks/{}", self.task);
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
        let email = &self.client.email;
        let task: Value = json!({"title": "Normal", "requester": email, "approver": email});
        let created = self
            .client
            .json(Method::POST, "/people-task/tasks", Some(&task))
            .await
            .context("creating a task")?;
        self.task = text(&created, "id")?.to_owned();
        Ok(())
    }
}
