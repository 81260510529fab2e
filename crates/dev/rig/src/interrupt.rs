//! Handles Ctrl-C, SIGTERM and a closed terminal.

use std::{
    process::{Child, ExitStatus},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use anyhow::Context;
use local_stack::process;
use nix::{
    sys::signal::{Signal, kill},
    unistd::Pid,
};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

const POLL: Duration = Duration::from_millis(50);

/// Whether the program should end.
#[derive(Clone)]
pub struct Interrupt {
    /// Zero, or the last signal.
    signal: Arc<AtomicUsize>,
}

impl Interrupt {
    /// Catches the signals, which no longer end the program.
    pub fn watch() -> anyhow::Result<Self> {
        let signal = Arc::new(AtomicUsize::new(0));
        for number in [SIGINT, SIGTERM, SIGHUP] {
            let value = usize::try_from(number)?;
            signal_hook::flag::register_usize(number, Arc::clone(&signal), value)
                .context("watching for signals")?;
        }
        Ok(Self { signal })
    }

    /// Whether a signal arrived.
    pub fn came(&self) -> bool {
        self.signal.load(Ordering::SeqCst) != 0
    }

    /// Fails if a signal was received, so that loops can end with `?`.
    pub fn check(&self) -> anyhow::Result<()> {
        anyhow::ensure!(!self.came(), "interrupted");
        Ok(())
    }

    /// Polls `condition` until it returns a value. Returns `None` after `limit`, and fails after a signal.
    pub fn wait_until<T>(
        &self,
        limit: Duration,
        mut condition: impl FnMut() -> Option<T>,
    ) -> anyhow::Result<Option<T>> {
        let found = process::wait_until(limit, || match self.check() {
            Ok(()) => condition().map(Ok),
            Err(interrupted) => Some(Err(interrupted)),
        });
        found.transpose()
    }

    /// Sleeps until `end`, or until a signal arrives.
    pub fn sleep_until(&self, end: Instant) {
        while Instant::now() < end && !self.came() {
            thread::sleep(POLL.min(end.saturating_duration_since(Instant::now())));
        }
    }

    /// Waits for a child process, and passes a signal on to it once. Ctrl-C reaches it anyway, because it shares
    /// the terminal, but `kill` does not.
    pub fn wait_for(&self, mut child: Child) -> anyhow::Result<ExitStatus> {
        let mut signalled = false;
        loop {
            if let Some(status) = child.try_wait().context("waiting for a process")? {
                return Ok(status);
            }
            if self.came() && !signalled {
                signalled = true;
                // The process may have just ended.
                let _ = kill(Pid::from_raw(i32::try_from(child.id())?), Signal::SIGTERM);
            }
            thread::sleep(POLL);
        }
    }
}
