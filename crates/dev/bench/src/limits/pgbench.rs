//! pgbench, in the same Postgres.

use std::time::Duration;

use anyhow::Context as _;
use rig::output::say;

use crate::system::database::Database;

const DATABASE: &str = "pgbench";
const SCALE: u32 = 20;
const REST: Duration = Duration::from_millis(500);

/// pgbench, whose tables are created at the first use.
#[derive(Debug)]
pub(crate) struct Pgbench {
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
    pub(crate) fn new(seconds: u64) -> Self {
        Self {
            seconds,
            is_prepared: false,
        }
    }

    /// Measures transactions per second.
    pub(crate) async fn measure(
        &mut self,
        server: &Database,
        script: Script,
        clients: usize,
    ) -> anyhow::Result<f64> {
        let database = server.named(DATABASE)?;
        if !self.is_prepared {
            prepare(server, &database).await?;
            self.is_prepared = true;
        }
        let option = script.option();
        let seconds = self.seconds;
        let options = format!("{option} -M prepared -n -j 1 -c {clients} -T {seconds}");
        let printed = database.pgbench(words(&options)).await?;
        // Its server processes end a little later, and their time must not count for what follows.
        tokio::time::sleep(REST).await;
        let rate = printed
            .lines()
            .find_map(|line| line.strip_prefix("tps = ")?.split(' ').next());
        let rate = rate.with_context(|| format!("pgbench printed no rate: {printed}"))?;
        Ok(rate.parse()?)
    }
}

async fn prepare(server: &Database, database: &Database) -> anyhow::Result<()> {
    say("preparing pgbench");
    let create = format!("CREATE DATABASE {DATABASE}");
    server.execute(&create).await?;
    let options = format!("-i -q -s {SCALE}");
    database.pgbench(words(&options)).await?;
    // Otherwise the checkpoint after these writes would be part of the first measurement.
    server.execute("CHECKPOINT").await
}

fn words(options: &str) -> Vec<String> {
    options.split(' ').map(str::to_owned).collect()
}
