//! Postgres, by its client programs.

use std::time::Duration;

use anyhow::Context as _;
use local_stack::{client, with_database};
use rig::output::say;

use super::tables;

/// How long a statement may take. Adding a million rows takes minutes.
const LIMIT: Duration = Duration::from_secs(15 * 60);

/// The option of pgbench for a transaction in which one row is changed, read and added.
pub(crate) const WRITE: &str = "-N";
/// The option of pgbench for a transaction in which one row is read.
pub(crate) const READ: &str = "-S";
const REST: Duration = Duration::from_millis(500);

/// A database, as its superuser sees it.
pub(crate) struct Database {
    url: String,
    has_pgbench: bool,
}

/// What tells whether the system has settled, and how much it wrote.
pub(crate) struct DatabaseState {
    /// Deliveries to recorded webhooks that are not finished.
    pub(crate) waiting: u64,
    /// Bytes of the write-ahead log since the server was created.
    pub(crate) wal: f64,
}

impl Database {
    pub(crate) fn new(url: &str) -> Self {
        Self {
            url: url.to_owned(),
            has_pgbench: false,
        }
    }

    pub(crate) async fn execute(&self, sql: &str) -> anyhow::Result<()> {
        self.query(sql).await.map(drop)
    }

    /// Runs a statement, and returns its rows as lines of columns separated by `|`.
    async fn query(&self, sql: &str) -> anyhow::Result<String> {
        let (url, sql) = (self.url.clone(), sql.to_owned());
        on_thread(move || client::query(&url, &sql)).await
    }

    /// Returns the transactions per second of pgbench. `script` is [`WRITE`] or [`READ`]. The first use creates the tables,
    /// in a database of their own.
    pub(crate) async fn pgbench_rate(
        &mut self,
        script: &str,
        clients: usize,
        seconds: usize,
    ) -> anyhow::Result<f64> {
        if !self.has_pgbench {
            say("preparing pgbench");
            self.execute("CREATE DATABASE pgbench").await?;
            self.pgbench("-i -q -s 20".to_owned()).await?;
            // Otherwise the checkpoint after these writes would be part of the first measurement.
            self.execute("CHECKPOINT").await?;
            self.has_pgbench = true;
        }
        let options = format!("{script} -M prepared -n -j 1 -c {clients} -T {seconds}");
        let printed = self.pgbench(options).await?;
        // Its server processes end a little later, and their time must not count for what follows.
        tokio::time::sleep(REST).await;
        let mut lines = printed.lines();
        let rate = lines.find_map(|line| line.strip_prefix("tps = ")?.split(' ').next());
        let rate = rate.with_context(|| format!("pgbench printed no rate: {printed}"))?;
        Ok(rate.parse()?)
    }

    /// Runs pgbench in its own database, and returns what it prints.
    async fn pgbench(&self, options: String) -> anyhow::Result<String> {
        let url = with_database(&self.url, "pgbench")?;
        on_thread(move || client::pgbench(&url, &options)).await
    }

    pub(crate) async fn state(&self) -> anyhow::Result<DatabaseState> {
        let row = self.query(tables::STATE).await?;
        let (waiting, wal) = row
            .split_once('|')
            .with_context(|| format!("an unexpected row: {row}"))?;
        Ok(DatabaseState {
            waiting: waiting.parse()?,
            wal: wal.parse()?,
        })
    }

    pub(crate) async fn version(&self) -> anyhow::Result<String> {
        self.query("SHOW server_version").await
    }
}

/// Waits for a client program. One that takes too long ends with its server.
async fn on_thread(
    program: impl FnOnce() -> anyhow::Result<String> + Send + 'static,
) -> anyhow::Result<String> {
    let ended = tokio::time::timeout(LIMIT, tokio::task::spawn_blocking(program)).await;
    ended.with_context(|| format!("it took longer than {} s", LIMIT.as_secs()))??
}
