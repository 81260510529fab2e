//! What all scenarios share.

use std::net::SocketAddr;
use std::ops::Range;
use std::time::Duration;

use rig::client::Person;
use rig::workspace::Workspace;

use crate::http::load::{Pace, send};
use crate::limits::pgbench::{Pgbench, Script};
use crate::report::{Limit, statistics};
use crate::system::System;

pub(crate) const PASSWORD: &str = "a long enough password for a benchmark";
const PGBENCH_SECONDS: u64 = 10;
const QUICK_PGBENCH_SECONDS: u64 = 3;
/// How many requests first show how many fit into a time.
const SAMPLE: usize = 4;
/// How many then show it.
const SAMPLES: usize = 1_000;

/// The system, a user of it, and the limits of the machine.
pub(crate) struct Context {
    pub(crate) workspace: Workspace,
    pub(crate) system: System,
    pub(crate) user: Person,
    pub(crate) quick: bool,
    pgbench: Pgbench,
    next_seq: u64,
    next_user: u32,
}

impl Context {
    /// Signs a user up who creates tasks and decides them.
    pub(crate) fn new(workspace: &Workspace, system: System, quick: bool) -> anyhow::Result<Self> {
        let seconds = if quick {
            QUICK_PGBENCH_SECONDS
        } else {
            PGBENCH_SECONDS
        };
        let mut context = Self {
            workspace: workspace.clone(),
            pgbench: Pgbench::new(seconds),
            system,
            user: Person::default(),
            quick,
            next_seq: 0,
            next_user: 0,
        };
        context.user = context.sign_up()?;
        Ok(context)
    }

    /// The size of a scenario.
    pub(crate) fn size(&self, full: usize, quick: usize) -> usize {
        if self.quick { quick } else { full }
    }

    /// Signs the administrator in. Returns the token.
    pub(crate) fn sign_in_admin(&self) -> anyhow::Result<String> {
        let rig = &self.system.rig;
        let admin = &rig.admin;
        let admin = rig.client().sign_in(&admin.username, &admin.password)?;
        Ok(admin.token)
    }

    /// Creates another user.
    pub(crate) fn sign_up(&mut self) -> anyhow::Result<Person> {
        self.next_user += 1;
        let email = format!("bench.{}@example.com", self.next_user);
        self.system.rig.client().sign_up(&email, PASSWORD)
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
        let rate = self.pgbench.measure(database, script, 32).await?;
        Ok(Limit::new(script.name(), rate))
    }

    /// Measures how long a transaction of pgbench takes now with one client, in milliseconds.
    pub(crate) async fn latency_limit(&mut self, script: Script) -> anyhow::Result<Limit> {
        let database = &self.system.database;
        let rate = self.pgbench.measure(database, script, 1).await?;
        let name = format!("{}, 1 client", script.name());
        Ok(Limit::new(&name, 1e3 / rate))
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
        let fitting = whole(statistics::rate(&calls) * time.as_secs_f64());
        count = fitting.clamp(SAMPLE, largest.max(SAMPLE));
    }
    Ok(count)
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a rate times a duration is not negative, and a number of requests fits"
)]
fn whole(count: f64) -> usize {
    count as usize
}
