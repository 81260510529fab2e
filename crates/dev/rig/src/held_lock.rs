//! A lock in Postgres that is held for as long as it is needed.

use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, ChildStdin, Stdio};

use anyhow::{Context as _, ensure};
use local_stack::client;

const HELD: &str = "held";

/// The locks of one transaction. Dropping it ends the transaction.
pub struct HeldLock {
    session: Child,
    /// Closing it ends the session.
    input: Option<ChildStdin>,
}

impl HeldLock {
    /// Runs statements in a transaction, and returns when they have their locks.
    pub fn acquire(url: &str, statements: &str) -> anyhow::Result<Self> {
        let mut session = client::psql(url)?
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .context("running psql")?;
        let mut input = session.stdin.take().context("psql has no input")?;
        writeln!(input, "BEGIN;\n{statements}\n\\echo {HELD}")?;
        let output = session.stdout.take().context("psql has no output")?;
        let lock = Self {
            session,
            input: Some(input),
        };
        let mut lines = BufReader::new(output).lines();
        let held = lines.any(|line| line.is_ok_and(|line| line == HELD));
        ensure!(held, "the locks could not be taken");
        Ok(lock)
    }
}

impl Drop for HeldLock {
    fn drop(&mut self) {
        drop(self.input.take());
        // It ends by itself, and with it the transaction.
        let _ = self.session.wait();
    }
}
