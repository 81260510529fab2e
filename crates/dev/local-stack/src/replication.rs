//! Streaming replication: a standby that copies a primary, and its promotion.

use std::{process::Stdio, time::Duration};

use anyhow::{Context as _, Result, ensure};

use crate::{Postgres, Stop, bootstrap, client, private, process::wait_until};

const STREAMING_LIMIT: Duration = Duration::from_secs(30);

/// The only row is `t` or `f`.
const IS_STREAMING: &str =
    "SELECT EXISTS (SELECT FROM pg_stat_replication WHERE state = 'streaming')";

impl Postgres {
    /// Replaces this server's data by a base backup of `primary`, and starts it as a standby. Returns when it
    /// streams.
    pub fn follow(&self, primary: &Self) -> Result<()> {
        self.stop(Stop::Kill)?;
        self.discard()?;
        private::create_folder(self.data())?;
        self.give_to_user(self.data())?;
        let mut command = client::command("pg_basebackup", &primary.admin_url())?;
        command
            .arg("--pgdata")
            .arg(self.data())
            .args(["--write-recovery-conf", "--checkpoint=fast", "--no-sync"])
            .stdout(Stdio::null());
        self.as_user(&mut command);
        // The settings of the environment are removed, and so is the password if the environment has one, too.
        command.env("PGPASSWORD", primary.password());
        let output = client::run("pg_basebackup", &mut command, b"")?;
        client::check("pg_basebackup", output)?;
        self.spawn()?;
        self.wait_ready()?;
        primary.wait_streaming()
    }

    /// Waits until a standby of this server streams.
    pub fn wait_streaming(&self) -> Result<()> {
        let is_streaming = || {
            matches!(client::query(&self.admin_url(), IS_STREAMING), Ok(rows) if rows == "t")
                .then_some(())
        };
        wait_until(STREAMING_LIMIT, is_streaming).context("no standby streams")
    }

    /// Makes this standby the primary. Returns when it accepts writes. Its former primary must have been stopped.
    pub fn promote(&self) -> Result<()> {
        let promote = "SELECT pg_promote(wait => true, wait_seconds => 60)";
        let promoted = client::query(&self.admin_url(), promote)?;
        ensure!(promoted == "t", "the standby was not promoted");
        Ok(())
    }

    /// Sets whether each commit on this server waits until a standby has written it to disk.
    pub fn set_synchronous(&self, synchronous: bool) -> Result<()> {
        let names = if synchronous { "*" } else { "" };
        // `ALTER SYSTEM` cannot run in the transaction that two statements of one `--command` would be.
        let script = format!(
            "ALTER SYSTEM SET synchronous_standby_names = '{names}';\nSELECT pg_reload_conf();\n"
        );
        bootstrap::execute(&self.admin_url(), &script)
    }
}
