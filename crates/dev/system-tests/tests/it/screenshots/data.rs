//! The people, tasks and webhooks in the pictures.

use chrono::{TimeDelta, Utc};
use rig::{Client, Stack};
use serde_json::{Value, json};

const REQUESTER: &str = "ada@example.com";
pub(crate) const APPROVER: &str = "grace@example.com";
pub(crate) const PASSWORD: &str = "correct horse";
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
    /// A task that needs a reason to be rejected, one with a long title, and one whose link is renewed.
    pub(crate) reason: Task,
    pub(crate) long: Task,
    pub(crate) shared: Task,
}

/// A task with the links of its people.
#[derive(Debug)]
pub(crate) struct Task {
    pub(crate) id: String,
    pub(crate) approver_link: String,
    pub(crate) requester_link: String,
}

/// Calls of the gateway.
struct Api<'stack> {
    client: Client,
    stack: &'stack Stack,
}

impl Example {
    /// Creates everything.
    pub(crate) fn create(stack: &Stack) -> anyhow::Result<Self> {
        let client = Client::new(&stack.gateway);
        let requester = client.sign_up(REQUESTER, PASSWORD)?.token;
        let approver = client.sign_up(APPROVER, PASSWORD)?.token;
        let admin = client.sign_in(&stack.admin.username, &stack.admin.password)?;
        let api = Api { client, stack };
        api.other_tasks(&requester, &approver)?;
        let [reason, long, shared] = api.special_tasks(&requester)?;
        api.deletion(&admin.token)?;
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
            gateway: stack.gateway.clone(),
            pending: api.create(&requester, pending, REQUESTER, APPROVER)?,
            requester,
            approver,
            admin: admin.token,
            approved,
            rejected,
            reason,
            long,
            shared,
        })
    }

    /// Another task that waits for a decision.
    ///
    /// # Errors
    /// A call fails.
    pub(crate) fn changing(&self) -> anyhow::Result<Task> {
        let body = json!({
            "title": "Hire a photographer for the opening",
            "description": "She takes pictures for **two hours**. The price is 300 €.",
            "requester": REQUESTER, "approver": APPROVER,
        });
        self.create_task(body)
    }

    /// A task that asks for a second press.
    ///
    /// # Errors
    /// A call fails.
    pub(crate) fn confirmed(&self) -> anyhow::Result<Task> {
        let body = json!({
            "title": "Delete the archive of 2019", "description": "It cannot be restored.",
            "requester": REQUESTER, "approver": APPROVER, "confirmationRequired": true,
        });
        self.create_task(body)
    }

    /// The deletion of another user: the parameters of its view.
    ///
    /// # Errors
    /// A call fails.
    pub(crate) fn deleted(&self, email: &str) -> anyhow::Result<String> {
        let client = Client::new(&self.gateway);
        let id = client.sign_up(email, PASSWORD)?.id;
        let ticket = client.delete(&format!("/users/{id}"), &self.admin)?;
        Ok(format!(
            "view=user&id={id}&ticket={}",
            ticket.text("/ticket")?
        ))
    }

    fn create_task(&self, body: Value) -> anyhow::Result<Task> {
        let client = Client::new(&self.gateway);
        let created = client
            .post("/people-task/tasks", &self.requester, body)?
            .body;
        Ok(Task::of(&created, &self.gateway))
    }

    /// Changes that task.
    ///
    /// # Errors
    /// The call fails.
    pub(crate) fn change(&self, task: &Task) -> anyhow::Result<()> {
        let changes = json!({
            "description": "She takes pictures for **three hours**. The price is 3,000 €.",
        });
        let path = format!("/people-task/tasks/{}", task.id);
        let client = Client::new(&self.gateway);
        client.put(&path, &self.requester, changes).map(drop)
    }
}

impl Task {
    /// The task of a response with its links.
    fn of(created: &Value, gateway: &str) -> Self {
        let id = text(created, "id");
        let link = |role: &str| {
            let secret = text(created, &format!("{role}Secret"));
            format!("{gateway}/tasks?taskId={id}&secret={secret}&role={role}")
        };
        Self {
            approver_link: link("approver"),
            requester_link: link("requester"),
            id,
        }
    }
}

/// A time before or after now, as the API writes it.
fn in_hours(hours: i64) -> String {
    let time = Utc::now() + TimeDelta::hours(hours);
    time.format("%Y-%m-%d %H:%M:%S").to_string()
}

impl Api<'_> {
    fn create(&self, token: &str, mut body: Value, from: &str, to: &str) -> anyhow::Result<Task> {
        if let Some(fields) = body.as_object_mut() {
            fields.insert("requester".to_owned(), from.into());
            fields.insert("approver".to_owned(), to.into());
        }
        let created = self.client.post("/people-task/tasks", token, body)?.body;
        Ok(Task::of(&created, &self.stack.gateway))
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
        let body =
            json!({"title": "Travel to the conference in Lisbon", "decisionBy": in_hours(90)});
        let _ = self.create(approver, body, APPROVER, REQUESTER)?;
        Ok(())
    }

    /// Tasks that look or behave differently.
    fn special_tasks(&self, requester: &str) -> anyhow::Result<[Task; 3]> {
        let reason = json!({"title": "Let Alan read the reports", "commentRequired": true});
        let title = "Renew the contract with Northwind Traders for three years. ".repeat(8);
        let long = json!({"title": title.trim(), "description": "The old one ends in May."});
        let shared = json!({"title": "Book the hall for the summer party"});
        let create = |body| self.create(requester, body, REQUESTER, APPROVER);
        Ok([create(reason)?, create(long)?, create(shared)?])
    }

    /// A user who is deleted.
    fn deletion(&self, admin: &str) -> anyhow::Result<()> {
        let person = self.client.sign_up("alan@example.com", PASSWORD)?;
        let path = format!("/users/{}", person.id);
        self.client.delete(&path, admin).map(drop)
    }

    /// A webhook that gets the decision, and one whose receiver refuses connections.
    fn webhooks(&self, token: &str, task: &Task) -> anyhow::Result<()> {
        let engine = &self.stack.demo_engine;
        for url in [
            format!("{engine}/webhooks/flow?correlationId=handbook&correlationInPort=in"),
            "http://127.0.0.1:9/decisions".to_owned(),
        ] {
            let body = json!({"taskId": task.id, "url": url});
            self.client.post("/people-task/webhooks", token, body)?;
        }
        Ok(())
    }

    fn decide(&self, token: &str, task: &Task, action: &str, comment: &str) -> anyhow::Result<()> {
        let path = format!("/people-task/tasks/{}/{action}", task.id);
        let body = json!({"comment": comment});
        self.client.put(&path, token, body).map(drop)
    }
}

fn text(value: &Value, field: &str) -> String {
    let text = value.get(field).and_then(Value::as_str);
    text.unwrap_or_default().to_owned()
}
