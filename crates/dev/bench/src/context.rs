//! What all scenarios share.

use std::ops::Range;

use anyhow::{Context as _, ensure};
use rig::workspace::Workspace;
use serde_json::{Value, json};

use crate::http::connection::Connection;
use crate::http::request::request;
use crate::limits::pgbench::{Pgbench, Script};
use crate::report::Limit;
use crate::system::System;

pub(crate) const PASSWORD: &str = "a long enough password for a benchmark";
const PGBENCH_SECONDS: u64 = 10;
const QUICK_PGBENCH_SECONDS: u64 = 3;

/// The system, a user of it, and the limits of the machine.
pub(crate) struct Context {
    pub(crate) workspace: Workspace,
    pub(crate) system: System,
    pub(crate) user: User,
    pub(crate) quick: bool,
    pgbench: Pgbench,
    next_seq: u64,
    next_user: u32,
}

/// A user and a token.
#[derive(Debug, Clone, Default)]
pub(crate) struct User {
    pub(crate) id: String,
    pub(crate) email: String,
    pub(crate) token: String,
}

impl Context {
    /// Signs a user up who creates tasks and decides them.
    pub(crate) async fn new(
        workspace: &Workspace,
        system: System,
        quick: bool,
    ) -> anyhow::Result<Self> {
        let seconds = if quick {
            QUICK_PGBENCH_SECONDS
        } else {
            PGBENCH_SECONDS
        };
        let mut context = Self {
            workspace: workspace.clone(),
            pgbench: Pgbench::new(&system.database, seconds),
            system,
            user: User::default(),
            quick,
            next_seq: 0,
            next_user: 0,
        };
        context.user = context.sign_up().await?;
        Ok(context)
    }

    /// The size of a scenario.
    pub(crate) fn size(&self, full: usize, quick: usize) -> usize {
        if self.quick { quick } else { full }
    }

    /// Signs the administrator in. Returns the token.
    pub(crate) async fn sign_in_admin(&self) -> anyhow::Result<String> {
        let (username, password) = &self.system.admin;
        let account = json!({"username": username, "password": password});
        let body = self.post("/user/auth", &account).await?;
        text(&body, "/token")
    }

    /// Creates another user.
    pub(crate) async fn sign_up(&mut self) -> anyhow::Result<User> {
        self.next_user += 1;
        let email = format!("bench.{}@example.com", self.next_user);
        let account = json!({"email": email, "password": PASSWORD});
        let body = self.post("/user", &account).await?;
        Ok(User {
            id: text(&body, "/user/id")?,
            token: text(&body, "/token")?,
            email,
        })
    }

    async fn post(&self, path: &str, body: &Value) -> anyhow::Result<Value> {
        let bytes = request("POST", path, None, Some(body));
        let mut connection = Connection::open(self.system.gateway).await?;
        let response = connection.call(&bytes).await?;
        let text = String::from_utf8_lossy(&response.body);
        ensure!(response.status == 200, "POST {path} returned {text}");
        Ok(serde_json::from_str(&text)?)
    }

    /// Returns numbers for webhooks that no other webhook of this run has.
    pub(crate) fn take_seqs(&mut self, count: usize) -> anyhow::Result<Range<u64>> {
        let start = self.next_seq;
        self.next_seq += u64::try_from(count)?;
        Ok(start..self.next_seq)
    }

    /// Measures what pgbench reaches now with 32 clients.
    pub(crate) async fn limit(&mut self, script: Script) -> anyhow::Result<Limit> {
        let database = &self.system.database;
        let rate = self.pgbench.transactions_per_second(database, script);
        Ok(Limit::new(script.name(), rate.await?))
    }

    /// Measures how long a transaction of pgbench takes now with one client.
    pub(crate) async fn latency_limit(&mut self, script: Script) -> anyhow::Result<Limit> {
        let time = self.pgbench.milliseconds(&self.system.database, script);
        let name = format!("{}, 1 client", script.name());
        Ok(Limit::new(&name, time.await?))
    }
}

fn text(body: &Value, pointer: &str) -> anyhow::Result<String> {
    let value = body.pointer(pointer).and_then(Value::as_str);
    let value = value.with_context(|| format!("the response has no {pointer}"))?;
    Ok(value.to_owned())
}
