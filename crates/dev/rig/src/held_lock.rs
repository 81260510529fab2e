//! A lock in Postgres that is held for as long as it is needed.

use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, Stdio};

use anyhow::{Context as _, ensure};
use local_stack::client;

use crate::system::System;

const HELD: &str = "held";

/// The locks of one transaction. Dropping it ends the transaction.
pub struct HeldLock(Child);

impl HeldLock {
    /// Runs statements in a transaction as the superuser, and returns when they have their locks.
    pub fn acquire(system: &System, statements: &str) -> anyhow::Result<Self> {
        let mut psql = client::psql(&system.backing.admin_url)?;
        psql.stdin(Stdio::piped()).stdout(Stdio::piped());
        // A fault may end the session.
        let session = psql.stderr(Stdio::null()).spawn();
        let mut lock = Self(session.context("running psql")?);
        let input = lock.0.stdin.as_mut().context("psql has no input")?;
        writeln!(input, "BEGIN;\n{statements}\n\\echo {HELD}")?;
        let output = lock.0.stdout.take().context("psql has no output")?;
        let mut lines = BufReader::new(output).lines();
        let held = lines.any(|line| line.is_ok_and(|line| line == HELD));
        ensure!(held, "the locks could not be taken");
        Ok(lock)
    }
}

impl Drop for HeldLock {
    fn drop(&mut self) {
        // It closes the input, which ends the session and with it the transaction.
        let _ = self.0.wait();
    }
}
