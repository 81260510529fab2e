//! The people, tasks and webhooks in the pictures.

use chrono::{TimeDelta, Utc};
use rig::client::{Call, Client};
use serde_json::{Value, json};

use crate::system::System;

const REQUESTER: &str = "ada@example.com";
const APPROVER: &str = "grace@example.com";
const PASSWORD: &str = "correct horse";
const DESCRIPTION: &str =
    "The new office opens on the **first of the month**, and its desks have no lamps yet.

| Item | Number | Price |
|---|---|---|
| Desk lamp, white | 12 | 39.90 € |
| Spare bulb | 6 | 4.50 € |

- Delivery takes *five working days*.
- The budget of the move covers it.

[The offer](https://example.com/offer)";

/// What the pictures show.
#[derive(Debug)]
pub(crate) struct Example {
    pub(crate) gateway: String,
    /// A token of each person.
    pub(crate) requester: String,
    pub(crate) approver: String,
    pub(crate) admin: String,
    /// The task that waits for a decision, and tasks that are decided.
    pub(crate) pending: Task,
    pub(crate) approved: Task,
    pub(crate) rejected: Task,
}

/// A task with the links of its people.
#[derive(Debug)]
pub(crate) struct Task {
    pub(crate) id: String,
    pub(crate) approver_link: String,
    pub(crate) requester_link: String,
}

/// Calls of the gateway.
struct Api<'system> {
    client: Client,
    system: &'system System,
}

impl Example {
    /// Creates everything.
    ///
    /// # Errors
    /// A call fails.
    pub(crate) fn create(system: &System) -> anyhow::Result<Self> {
        let mut client = Client::new(&system.gateway);
        client.quiet = true;
        let api = Api { client, system };
        let requester = api.sign_up(REQUESTER)?;
        let approver = api.sign_up(APPROVER)?;
        let admin = api.sign_in(&system.admin_username, &system.admin_password)?;
        api.other_tasks(&requester, &approver)?;
        let pending = json!({
            "title": "Order 12 desk lamps for the new office", "description": DESCRIPTION,
            "decisionBy": in_hours(44),
        });
        let approved = api.task(&requester, "Translate the handbook into German", 30)?;
        let rejected = api.task(&requester, "Replace the coffee machine", 200)?;
        api.webhooks(&requester, &approved)?;
        api.decide(
            &approver,
            &approved,
            "approve",
            "Use the glossary of last year.",
        )?;
        api.decide(
            &approver,
            &rejected,
            "reject",
            "It is two years old.\n\nAsk again in spring.",
        )?;
        Ok(Self {
            gateway: system.gateway.clone(),
            pending: api.create(&requester, pending, REQUESTER, APPROVER)?,
            requester,
            approver,
            admin,
            approved,
            rejected,
        })
    }
}

/// A time before or after now, as the API writes it.
fn in_hours(hours: i64) -> String {
    let time = Utc::now() + TimeDelta::hours(hours);
    time.format("%Y-%m-%d %H:%M:%S").to_string()
}

impl Api<'_> {
    fn post(&self, token: Option<&str>, path: &str, body: Value) -> anyhow::Result<Value> {
        let mut call = Call::new("POST", path).body(body);
        call.token = token;
        Ok(self.client.call(&call)?.expect(200)?.body)
    }

    /// Signs a person up, or in if an earlier run has signed them up.
    fn sign_up(&self, email: &str) -> anyhow::Result<String> {
        let body = json!({"username": email, "password": PASSWORD});
        let call = Call::new("POST", "/user").body(body);
        let created = self.client.call(&call)?;
        if created.code() == "username-taken" {
            return self.sign_in(email, PASSWORD);
        }
        Ok(text(&created.expect(200)?.body, "token"))
    }

    fn sign_in(&self, username: &str, password: &str) -> anyhow::Result<String> {
        let body = json!({"username": username, "password": password});
        Ok(text(&self.post(None, "/user/auth", body)?, "token"))
    }

    fn create(&self, token: &str, mut body: Value, from: &str, to: &str) -> anyhow::Result<Task> {
        if let Some(fields) = body.as_object_mut() {
            fields.insert("requester".to_owned(), from.into());
            fields.insert("approver".to_owned(), to.into());
        }
        let created = self.post(Some(token), "/people-task/tasks", body)?;
        let id = text(&created, "id");
        let link = |role: &str| {
            let secret = text(&created, &format!("{role}Secret"));
            let gateway = &self.system.gateway;
            format!("{gateway}/tasks?taskId={id}&secret={secret}&role={role}")
        };
        Ok(Task {
            approver_link: link("approver"),
            requester_link: link("requester"),
            id,
        })
    }

    /// A task of the requester with a due date.
    fn task(&self, token: &str, title: &str, hours: i64) -> anyhow::Result<Task> {
        let body = json!({"title": title, "decisionBy": in_hours(hours)});
        self.create(token, body, REQUESTER, APPROVER)
    }

    /// Tasks that only lists show: one is overdue, one has no due date, one is the approver's own.
    fn other_tasks(&self, requester: &str, approver: &str) -> anyhow::Result<()> {
        let _ = self.task(requester, "Publish the release notes of version 4.2", -3)?;
        let _ = self.task(requester, "Renew the contract with Northwind Traders for three years, with the new prices for support at night and at weekends", 500)?;
        let body = json!({"title": "Let Alan read the reports", "commentRequired": true});
        let _ = self.create(requester, body, REQUESTER, APPROVER)?;
        let body =
            json!({"title": "Travel to the conference in Lisbon", "decisionBy": in_hours(90)});
        let _ = self.create(approver, body, APPROVER, REQUESTER)?;
        Ok(())
    }

    /// A webhook that gets the decision, and one whose receiver refuses connections.
    fn webhooks(&self, token: &str, task: &Task) -> anyhow::Result<()> {
        let engine = &self.system.engine;
        for url in [
            format!("{engine}/webhooks/flow?correlationId=handbook&correlationInPort=in"),
            "http://127.0.0.1:9/decisions".to_owned(),
        ] {
            let body = json!({"taskId": task.id, "url": url});
            let _ = self.post(Some(token), "/people-task/webhooks", body)?;
        }
        Ok(())
    }

    fn decide(&self, token: &str, task: &Task, action: &str, comment: &str) -> anyhow::Result<()> {
        let path = format!("/people-task/tasks/{}/{action}", task.id);
        let call = Call::new("PUT", path).token(token);
        let call = call.body(json!({"comment": comment}));
        let _ = self.client.call(&call)?.expect(200)?;
        Ok(())
    }
}

fn text(value: &Value, field: &str) -> String {
    let text = value.get(field).and_then(Value::as_str);
    text.unwrap_or_default().to_owned()
}
