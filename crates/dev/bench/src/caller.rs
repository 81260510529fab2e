//! Makes the calls of a flow engine and an approver.

use std::time::Duration;

use anyhow::{Context as _, ensure};
use futures_util::{StreamExt as _, TryStreamExt as _, stream};
use reqwest::{Client, Method};
use serde_json::{Value, json};

use crate::receivers::Receivers;

const TIMEOUT: Duration = Duration::from_secs(30);
const PASSWORD: &str = "a long enough password for a benchmark";

/// A user who creates tasks and decides them.
#[derive(Debug, Clone)]
pub(crate) struct Caller {
    client: Client,
    gateway: String,
    token: String,
    email: String,
    concurrency: usize,
}

/// A pending task and the keys of its webhooks.
#[derive(Debug, Clone)]
pub(crate) struct PreparedTask {
    pub(crate) task: String,
    pub(crate) keys: Vec<String>,
}

impl Caller {
    /// Signs a new user up at `gateway`.
    pub(crate) async fn sign_up(gateway: &str, concurrency: usize) -> anyhow::Result<Self> {
        let client = Client::builder()
            .no_proxy()
            .timeout(TIMEOUT)
            .pool_max_idle_per_host(concurrency)
            .build()?;
        let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH)?;
        let email = format!("bench-{}@example.com", now.as_nanos());
        let mut caller = Self {
            client,
            gateway: gateway.trim_end_matches('/').to_owned(),
            token: String::new(),
            email: email.clone(),
            concurrency: concurrency.max(1),
        };
        let account = json!({"email": email, "password": PASSWORD});
        caller.call(Method::POST, "/user", Some(&account)).await?;
        let credentials = json!({"username": email, "password": PASSWORD});
        let response = caller
            .call(Method::POST, "/user/auth", Some(&credentials))
            .await?;
        caller.token = text(&response, "token")?;
        Ok(caller)
    }

    /// Creates tasks with webhooks.
    pub(crate) async fn prepare(
        &self,
        tasks: usize,
        webhooks: usize,
        receivers: &Receivers,
    ) -> anyhow::Result<Vec<PreparedTask>> {
        stream::iter(0..tasks)
            .map(|number| self.prepare_one(number, webhooks, receivers))
            .buffer_unordered(self.concurrency)
            .try_collect()
            .await
    }

    async fn prepare_one(
        &self,
        number: usize,
        webhooks: usize,
        receivers: &Receivers,
    ) -> anyhow::Result<PreparedTask> {
        let task = json!({"title": "Bench", "requester": self.email, "approver": self.email});
        let response = self
            .call(Method::POST, "/people-task/tasks", Some(&task))
            .await?;
        let task = text(&response, "id")?;
        let mut keys = Vec::with_capacity(webhooks);
        for place in 0..webhooks {
            let key = format!("{task}-{place}");
            let url = receivers.url(number * webhooks + place, &key);
            let webhook = json!({"taskId": task, "url": url});
            self.call(Method::POST, "/people-task/webhooks", Some(&webhook))
                .await?;
            keys.push(key);
        }
        Ok(PreparedTask { task, keys })
    }

    /// Approves a task.
    pub(crate) async fn approve(&self, task: &str) -> anyhow::Result<()> {
        let path = format!("/people-task/tasks/{task}/approve");
        self.call(Method::PUT, &path, None).await.map(drop)
    }

    async fn call(
        &self,
        method: Method,
        path: &str,
        body: Option<&Value>,
    ) -> anyhow::Result<Value> {
        let mut request = self
            .client
            .request(method, format!("{}{path}", self.gateway));
        if !self.token.is_empty() {
            request = request.bearer_auth(&self.token);
        }
        if let Some(body) = body {
            request = request.json(body);
        }
        let response = request.send().await?;
        let status = response.status();
        let text = response.text().await?;
        ensure!(status.is_success(), "{path} returned {status}: {text}");
        Ok(serde_json::from_str(&text).unwrap_or(Value::Null))
    }
}

fn text(response: &Value, field: &str) -> anyhow::Result<String> {
    let text = response.get(field).and_then(Value::as_str);
    Ok(text
        .with_context(|| format!("a response has no `{field}`"))?
        .to_owned())
}
