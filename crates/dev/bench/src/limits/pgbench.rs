//! pgbench, in the same Postgres.

use std::time::Duration;

use anyhow::Context as _;
use rig::output::say;

use crate::system::database::{Database, output};

const DATABASE: &str = "pgbench";
const SCALE: u32 = 20;
const CLIENTS: usize = 32;
const REST: Duration = Duration::from_millis(500);

/// pgbench's tables, which are created at the first use.
#[derive(Debug)]
pub(crate) struct Pgbench {
    database: Database,
    seconds: u64,
    is_prepared: bool,
}

/// A transaction of pgbench.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Script {
    /// One row is changed, read and added: `-N`.
    Write,
    /// One row is read: `-S`.
    Read,
}

impl Script {
    fn option(self) -> &'static str {
        match self {
            Self::Write => "-N",
            Self::Read => "-S",
        }
    }

    /// How tables name it.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Write => "pgbench -N",
            Self::Read => "pgbench -S",
        }
    }
}

impl Pgbench {
    /// Each measurement takes `seconds`.
    pub(crate) fn new(server: &Database, seconds: u64) -> Self {
        Self {
            database: server.named(DATABASE),
            seconds,
            is_prepared: false,
        }
    }

    /// Measures transactions per second with 32 clients.
    pub(crate) async fn transactions_per_second(
        &mut self,
        server: &Database,
        script: Script,
    ) -> anyhow::Result<f64> {
        self.run(server, script, CLIENTS).await
    }

    /// Measures the milliseconds of a transaction with one client.
    pub(crate) async fn milliseconds(
        &mut self,
        server: &Database,
        script: Script,
    ) -> anyhow::Result<f64> {
        Ok(1e3 / self.run(server, script, 1).await?)
    }

    async fn run(
        &mut self,
        server: &Database,
        script: Script,
        clients: usize,
    ) -> anyhow::Result<f64> {
        self.prepare(server).await?;
        let mut command = self.database.command("pgbench")?;
        command.args([script.option(), "-M", "prepared", "-n", "-j", "1"]);
        command.args(["-c", &clients.to_string(), "-T", &self.seconds.to_string()]);
        let printed = output("pgbench", command).await?;
        // Its server processes end a little later, and their time must not count for what follows.
        tokio::time::sleep(REST).await;
        let rate = printed
            .lines()
            .find_map(|line| line.strip_prefix("tps = ")?.split(' ').next());
        let rate = rate.with_context(|| format!("pgbench printed no rate: {printed}"))?;
        Ok(rate.parse()?)
    }

    async fn prepare(&mut self, server: &Database) -> anyhow::Result<()> {
        if self.is_prepared {
            return Ok(());
        }
        say("preparing pgbench");
        let create = format!("CREATE DATABASE {DATABASE}");
        server.execute(&create).await?;
        let mut command = self.database.command("pgbench")?;
        command.args(["-i", "-q", "-s", &SCALE.to_string()]);
        output("pgbench -i", command).await?;
        // Otherwise the checkpoint after so many writes would be part of the first measurement.
        server.execute("CHECKPOINT").await?;
        self.is_prepared = true;
        Ok(())
    }
}
