//! Postgres, by its client programs.

use std::process::Stdio;
use std::time::Duration;

use anyhow::{Context as _, ensure};
use local_stack::packages;
use tokio::process::Command;
use url::Url;

use super::tables;

/// How long a statement may take. Adding a million rows takes minutes.
const LIMIT: Duration = Duration::from_secs(15 * 60);

/// A database, as its superuser sees it.
#[derive(Debug, Clone)]
pub(crate) struct Database {
    /// The environment of libpq. The password is not on a command line, where every user could read it.
    environment: Vec<(&'static str, String)>,
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
    pub(crate) fn new(url: &str) -> anyhow::Result<Self> {
        let url: Url = url.parse().context("reading the database's URL")?;
        let host = url.host_str().context("the URL has no host")?;
        let port = url.port().context("the URL has no port")?;
        let environment = vec![
            ("PGHOST", host.to_owned()),
            ("PGPORT", port.to_string()),
            ("PGUSER", url.username().to_owned()),
            ("PGPASSWORD", url.password().unwrap_or_default().to_owned()),
            ("PGDATABASE", url.path().trim_start_matches('/').to_owned()),
            ("PGSSLMODE", "disable".to_owned()),
            ("PGCONNECT_TIMEOUT", "10".to_owned()),
        ];
        Ok(Self { environment })
    }

    /// Another database of the same server.
    pub(crate) fn named(&self, name: &str) -> Self {
        let mut environment = self.environment.clone();
        for (variable, value) in &mut environment {
            if *variable == "PGDATABASE" {
                name.clone_into(value);
            }
        }
        Self { environment }
    }

    /// A client program that connects to this database. It ends when it is dropped.
    pub(crate) fn command(&self, program: &str) -> anyhow::Result<Command> {
        let mut command = Command::new(packages::postgres_client(program)?);
        command
            .envs(self.environment.iter().map(|(name, value)| (name, value)))
            .stdin(Stdio::null())
            .kill_on_drop(true);
        Ok(command)
    }

    /// Runs statements that return nothing.
    pub(crate) async fn execute(&self, sql: &str) -> anyhow::Result<()> {
        self.query(sql).await.map(drop)
    }

    /// Runs a statement, and returns its rows as lines of columns separated by `|`.
    pub(crate) async fn query(&self, sql: &str) -> anyhow::Result<String> {
        let mut command = self.psql()?;
        command.args(["--command", sql]);
        output("psql", command).await
    }

    /// Reads the state of the deliveries and of the log.
    pub(crate) async fn state(&self) -> anyhow::Result<DatabaseState> {
        let row = self.query(tables::STATE).await?;
        let (waiting, wal) = row
            .trim()
            .split_once('|')
            .with_context(|| format!("an unexpected row: {row}"))?;
        Ok(DatabaseState {
            waiting: waiting.parse()?,
            wal: wal.parse()?,
        })
    }

    /// The version of the server.
    pub(crate) async fn version(&self) -> anyhow::Result<String> {
        Ok(self.query("SHOW server_version").await?.trim().to_owned())
    }

    fn psql(&self) -> anyhow::Result<Command> {
        let mut command = self.command("psql")?;
        command.args(["--no-psqlrc", "--quiet", "--tuples-only", "--no-align"]);
        command.args(["--no-password", "--set", "ON_ERROR_STOP=1"]);
        Ok(command)
    }
}

/// Runs a program and returns what it prints.
pub(crate) async fn output(name: &str, mut command: Command) -> anyhow::Result<String> {
    let running = command.stderr(Stdio::piped()).output();
    let limit = LIMIT.as_secs();
    let output = tokio::time::timeout(LIMIT, running)
        .await
        .with_context(|| format!("{name} took longer than {limit} s"))?
        .with_context(|| format!("running {name}"))?;
    ensure!(
        output.status.success(),
        "{name} failed: {}",
        String::from_utf8_lossy(&output.stderr).trim()
    );
    Ok(String::from_utf8(output.stdout)?)
}
