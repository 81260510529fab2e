//! Webhooks to ever new hosts that do not resolve: registering them and delivering to them looks the hosts up.

use std::time::Duration;

use reqwest::Method;
use serde_json::json;

use super::attack::Attack;
use super::requests::outcome;
use crate::client::{Client, text};

pub(super) static ATTACK: Attack = Attack {
    name: "webhooks to nowhere",
    loops: 16,
    interval: Duration::from_millis(100),
};

/// A task can have 20.
const WEBHOOKS_PER_TASK: usize = 10;

/// What one loop of the attack does next.
#[derive(Debug, Default)]
pub(super) struct Webhooks {
    task: Option<String>,
    registered: usize,
}

impl Webhooks {
    /// Creates a task, registers a webhook for it or, after some webhooks, approves it. Returns what was done and
    /// its status or error.
    pub(super) async fn run(&mut self, client: &Client, number: usize, round: usize) -> String {
        let Some(task) = self.task.clone() else {
            return match create(client).await {
                Ok(task) => {
                    self.task = Some(task);
                    self.registered = 0;
                    "create: 200 OK".to_owned()
                }
                Err(error) => format!("create: {error:#}"),
            };
        };
        if self.registered >= WEBHOOKS_PER_TASK {
            self.task = None;
            let path = format!("/people-task/tasks/{task}/approve");
            let status = client.status(Method::PUT, &path, None).await;
            return format!("approve: {}", outcome(status));
        }
        self.registered += 1;
        let url = format!("https://hooks.{}/", fresh_domain(client, number, round));
        let webhook = json!({"taskId": task, "url": url});
        let path = "/people-task/webhooks";
        let status = client.status(Method::POST, path, Some(&webhook)).await;
        format!("register: {}", outcome(status))
    }
}

async fn create(client: &Client) -> anyhow::Result<String> {
    let email = &client.email;
    let task = json!({"title": "Nowhere", "requester": email, "approver": email});
    let path = "/people-task/tasks";
    let created = client.json(Method::POST, path, Some(&task)).await?;
    Ok(text(&created, "id")?.to_owned())
}

/// A domain that no earlier lookup asked for. Resolvers send questions about `.example` to the name servers, unlike
/// those about `.invalid`.
fn fresh_domain(client: &Client, number: usize, round: usize) -> String {
    let account = client.email.split('@').next().unwrap_or_default();
    format!("{account}-{number}-{round}.example")
}
