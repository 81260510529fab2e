//! Postgres, by its client programs.

use std::time::Duration;

use anyhow::Context as _;
use local_stack::{client, with_database};

use super::tables;

/// How long a statement may take. Adding a million rows takes minutes.
const LIMIT: Duration = Duration::from_secs(15 * 60);

/// A database, as its superuser sees it.
#[derive(Debug, Clone)]
pub(crate) struct Database {
    url: String,
}

/// What tells whether the system has settled, and how much it wrote.
#[derive(Debug, Clone, Copy)]
pub(crate) struct DatabaseState {
    /// Deliveries to recorded webhooks that are not finished.
    pub(crate) waiting: u64,
    /// Bytes of the write-ahead log since the server was created.
    pub(crate) wal: f64,
}

impl Database {
    pub(crate) fn new(url: &str) -> Self {
        let url = url.to_owned();
        Self { url }
    }

    /// Another database of the same server.
    pub(crate) fn named(&self, name: &str) -> anyhow::Result<Self> {
        Ok(Self::new(&with_database(&self.url, name)?))
    }

    /// Runs statements that return nothing.
    pub(crate) async fn execute(&self, sql: &str) -> anyhow::Result<()> {
        self.query(sql).await.map(drop)
    }

    /// Runs a statement, and returns its rows as lines of columns separated by `|`.
    async fn query(&self, sql: &str) -> anyhow::Result<String> {
        let (url, sql) = (self.url.clone(), sql.to_owned());
        on_thread(move || client::query(&url, &sql)).await
    }

    /// Runs pgbench, and returns what it prints.
    pub(crate) async fn pgbench(&self, arguments: Vec<String>) -> anyhow::Result<String> {
        let url = self.url.clone();
        on_thread(move || client::pgbench(&url, &arguments)).await
    }

    /// Reads the state of the deliveries and of the log.
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

    /// The version of the server.
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
