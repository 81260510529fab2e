//! Work that is pending at the time of a backup: a delivery, a deletion and a notification, none of which can be completed
//! because the flow engine, which also receives webhooks and codes, is down.

use std::time::Instant;

use anyhow::{Context, ensure};
use local_stack::process::wait_until;
use serde_json::{Value, json};

use super::drill::{PASSWORD, WORK_LIMIT, check_tokens, email, task};
use rig::{
    client::{Call, Client, Person},
    output::say,
    stack_file::Admin,
    system::System,
};

/// Tells the users of this drill from those of others.
const NUMBER: usize = 1_000;
const NEW_PASSWORD: &str = "a password by a code";

/// The pending work.
pub(super) struct OpenWork {
    gateway: Client,
    engine: Client,
    admin: Admin,
    admin_token: String,
    /// Whose task is decided.
    ada: Person,
    /// Who is being deleted.
    bob: Person,
    /// Who forgot the password.
    carol: Person,
    task: String,
    delivery: String,
    /// The path of the deletion's status.
    deletion: String,
}

impl OpenWork {
    pub(super) fn start(system: &System) -> anyhow::Result<Self> {
        let (gateway, engine) = (system.client(), Client::new(&system.demo_engine));
        let sign_up = |name: &str| gateway.sign_up(&email(name, NUMBER), PASSWORD);
        let admin = system.admin.clone();
        let mut work = Self {
            admin_token: gateway.sign_in(&admin.username, &admin.password)?.token,
            ada: sign_up("ada")?,
            bob: sign_up("bob")?,
            carol: sign_up("carol")?,
            task: String::new(),
            delivery: String::new(),
            deletion: String::new(),
            gateway,
            engine,
            admin,
        };
        let down = Call::new("PUT", "/control").body(json!({"down": true}));
        work.engine.call(&down)?.expect(200)?;
        work.decide(&system.demo_engine)?;
        work.delete()?;
        let forgot = json!({"email": work.carol.email});
        let forgot = Call::new("POST", "/user/forgot-password").body(forgot);
        work.gateway.call(&forgot)?.expect(200)?;
        Ok(work)
    }

    /// Approves a task with a webhook, and waits until its delivery has failed once.
    fn decide(&mut self, engine: &str) -> anyhow::Result<()> {
        let token = &self.ada.token;
        let task = task(&self.ada.email);
        let created = self.gateway.post("/people-task/tasks", token, task)?;
        self.task = created.text("/id")?.to_owned();
        let url = format!("{engine}/webhooks/empty-system");
        let webhook = json!({"taskId": self.task, "url": url});
        self.gateway.post("/people-task/webhooks", token, webhook)?;
        let approve = format!("/people-task/tasks/{}/approve", self.task);
        self.gateway.put(&approve, token, json!({}))?;
        let failed = wait_until(WORK_LIMIT, || {
            let delivery = self.load_delivery(token).ok()?;
            let attempts = delivery.get("attempts")?.as_array()?.len();
            (attempts > 0).then_some(delivery)
        });
        let delivery = failed.context("the delivery was not tried")?;
        let id = delivery.get("id").and_then(Value::as_str);
        id.context("the delivery has no identifier")?
            .clone_into(&mut self.delivery);
        Ok(())
    }

    fn delete(&mut self) -> anyhow::Result<()> {
        let path = format!("/users/{}", self.bob.id);
        let deletion = self.gateway.delete(&path, &self.admin_token)?;
        self.deletion = format!("{path}/delete-status/{}", deletion.text("/ticket")?);
        Ok(())
    }

    /// Fails if any of the work is not pending.
    pub(super) fn check_pending(&self) -> anyhow::Result<()> {
        let delivery = self.load_delivery(&self.ada.token)?;
        let status = delivery.get("status");
        ensure!(
            status == Some(&json!("pending")),
            "the delivery is not pending: {delivery}"
        );
        let deletion = self.gateway.get(&self.deletion, &self.admin_token)?;
        ensure!(
            deletion.text("/status")? == "in-progress",
            "the deletion is not in progress: {}",
            deletion.body
        );
        let received = self
            .engine
            .received(&format!("kind=forgot-password&email={}", self.carol.email))?;
        ensure!(received.is_empty(), "the code was sent already");
        Ok(())
    }

    /// Checks that all of it completes in the restored system, whose flow engine works.
    pub(super) fn check_completed(&self, system: &System, restored: Instant) -> anyhow::Result<()> {
        let people =
            [&self.ada, &self.bob, &self.carol].map(|p| (p.email.clone(), p.token.clone()));
        let mut tokens = Vec::from(people);
        tokens.push(("the administrator".to_owned(), self.admin_token.clone()));
        check_tokens(&system.token_verifiers(), &tokens, restored)?;
        self.check_delivered()?;
        self.check_deleted()?;
        self.check_code()?;
        let elapsed = restored.elapsed().as_secs_f64();
        say(&format!(
            "  all pending work is completed, {elapsed:.1} s after the start"
        ));
        Ok(())
    }

    fn check_delivered(&self) -> anyhow::Result<()> {
        let delivered = wait_until(WORK_LIMIT, || {
            let mut calls = self.engine.received("kind=webhook").ok()?.into_iter();
            calls.find(|call| call.pointer("/body/id") == Some(&json!(self.task)))
        });
        let call = delivered.context("the pending delivery did not arrive")?;
        let id = call.pointer("/headers/webhook-id");
        ensure!(
            id == Some(&json!(self.delivery)),
            "the webhook-id is not {}: {call}",
            self.delivery
        );
        say("  the pending delivery arrived under the webhook-id of before");
        Ok(())
    }

    fn check_deleted(&self) -> anyhow::Result<()> {
        let Admin { username, password } = &self.admin;
        let admin = self.gateway.sign_in(username, password)?;
        self.gateway
            .wait_deleted(&self.deletion, &admin.token, WORK_LIMIT)?;
        self.gateway
            .try_sign_in(&self.bob.email, PASSWORD)?
            .expect(401)?;
        say("  the deletion is completed");
        Ok(())
    }

    /// The code that was sent sets a new password.
    fn check_code(&self) -> anyhow::Result<()> {
        let query = format!("kind=forgot-password&email={}", self.carol.email);
        let code = wait_until(WORK_LIMIT, || {
            let calls = self.engine.received(&query).ok()?;
            let code = calls.last()?.pointer("/body/code")?.as_str();
            code.map(str::to_owned)
        });
        let code = code.context("the code was not sent")?;
        let reset = json!({"code": code, "password": NEW_PASSWORD});
        let reset = Call::new("POST", "/user/forgot-password/reset").body(reset);
        self.gateway.call(&reset)?.expect(200)?;
        self.gateway.sign_in(&self.carol.email, NEW_PASSWORD)?;
        say("  the pending code was sent, and sets a new password");
        Ok(())
    }

    fn load_delivery(&self, token: &str) -> anyhow::Result<Value> {
        let path = format!("/people-task/tasks/{}/deliveries", self.task);
        let delivery = self.gateway.get(&path, token)?.body.get(0).cloned();
        delivery.context("there is no delivery")
    }
}
