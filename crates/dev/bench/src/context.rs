//! What all scenarios share.

use std::net::SocketAddr;
use std::time::Duration;

use rig::client::Person;

use crate::http::load::{Pace, send};
use crate::report::{self, Limit};
use crate::system::System;
use crate::system::tables::{self, Roles};

/// How many requests first show how many fit into a time.
const SAMPLE: usize = 4;
/// How many then show it.
const SAMPLES: usize = 1_000;

/// The system, a user of it, and the limits of the machine.
pub(crate) struct Context {
    pub(crate) system: System,
    pub(crate) user: Person,
    quick: bool,
    /// The number of the next webhook.
    pub(crate) next_seq: u64,
}

impl Context {
    /// Signs a user up who creates tasks and decides them.
    pub(crate) fn new(system: System, quick: bool) -> anyhow::Result<Self> {
        Ok(Self {
            user: system.rig.client().sign_up_new("bench")?,
            system,
            quick,
            next_seq: 0,
        })
    }

    /// The size or the duration of a scenario.
    pub(crate) fn pick<T>(&self, full: T, quick: T) -> T {
        if self.quick { quick } else { full }
    }

    /// Replaces all tasks by generated ones with descriptions of this length.
    pub(crate) async fn add_tasks(
        &self,
        count: usize,
        user: &Person,
        roles: Roles,
        description: usize,
    ) -> anyhow::Result<()> {
        self.system.reset().await?;
        let database = &self.system.database;
        let tasks = tables::add_tasks(count, user, roles, description);
        database.execute(&tasks).await?;
        database.execute(tables::VACUUM_TASKS).await?;
        // The checkpoint after so many writes is not a part of what is measured.
        database.execute("CHECKPOINT").await
    }

    /// Creates another user.
    pub(crate) fn sign_up(&self) -> anyhow::Result<Person> {
        self.system.rig.client().sign_up_new("bench")
    }

    /// Measures what pgbench reaches now with 32 clients.
    pub(crate) async fn limit(&mut self, script: &str) -> anyhow::Result<Limit> {
        let rate = self.pgbench(script, 32).await?;
        Ok(Limit::new(&format!("pgbench {script}"), rate))
    }

    /// Measures how long a transaction of pgbench takes now with one client, in milliseconds.
    pub(crate) async fn latency_limit(&mut self, script: &str) -> anyhow::Result<Limit> {
        let rate = self.pgbench(script, 1).await?;
        let name = format!("pgbench {script}, 1 client");
        Ok(Limit::new(&name, 1e3 / rate))
    }

    /// Measures transactions per second.
    async fn pgbench(&mut self, script: &str, clients: usize) -> anyhow::Result<f64> {
        let seconds = self.pick(10, 3);
        let database = &mut self.system.database;
        database.pgbench_rate(script, clients, seconds).await
    }
}

/// Returns how often a request can be repeated in about `time`, as the rate of some shows, but at most `most` times.
pub(crate) async fn fitting(
    address: SocketAddr,
    request: &[u8],
    pace: Pace,
    time: Duration,
    most: usize,
) -> anyhow::Result<usize> {
    let mut count = SAMPLE;
    // The first requests open connections, so the rate is that of more, if they are fast.
    for largest in [SAMPLES, most] {
        let calls = send(address, &vec![request; count], pace).await?;
        let each = Duration::from_secs_f64(1.0 / report::rate(&calls));
        let fitting = usize::try_from(time.as_nanos() / each.as_nanos().max(1))?;
        count = fitting.clamp(SAMPLE, largest.max(SAMPLE));
    }
    Ok(count)
}
