//! Handles Ctrl-C, SIGTERM and a closed terminal, which reach the whole program.

use std::process::{Child, ExitStatus};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, LazyLock};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::Context;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

const POLL: Duration = Duration::from_millis(50);

static CAME: LazyLock<Arc<AtomicBool>> = LazyLock::new(Arc::default);

/// Catches the signals, which no longer end the program.
pub fn watch() -> anyhow::Result<()> {
    for number in [SIGINT, SIGTERM, SIGHUP] {
        let registered = signal_hook::flag::register(number, Arc::clone(&CAME));
        registered.context("watching for signals")?;
    }
    Ok(())
}

pub fn came() -> bool {
    CAME.load(Ordering::SeqCst)
}

/// Fails if a signal was received, so that loops can end with `?`.
pub fn check() -> anyhow::Result<()> {
    anyhow::ensure!(!came(), "interrupted");
    Ok(())
}

/// Polls `condition` until it returns a value. Returns `None` after `limit`, and fails after a signal.
pub fn wait_until<T>(
    limit: Duration,
    mut condition: impl FnMut() -> Option<T>,
) -> anyhow::Result<Option<T>> {
    let found = local_stack::wait_until(limit, || match check() {
        Ok(()) => condition().map(Ok),
        Err(interrupted) => Some(Err(interrupted)),
    });
    found.transpose()
}

/// Sleeps until `end`, or until a signal arrives.
pub fn sleep_until(end: Instant) {
    while Instant::now() < end && !came() {
        thread::sleep(POLL.min(end.saturating_duration_since(Instant::now())));
    }
}

/// Waits for a child process, and passes a signal on to it once. Ctrl-C reaches it anyway, because it shares the terminal,
/// but `kill` does not.
pub fn wait_for(mut child: Child) -> anyhow::Result<ExitStatus> {
    let mut signalled = false;
    loop {
        if let Some(status) = child.try_wait().context("waiting for a process")? {
            return Ok(status);
        }
        if came() && !signalled {
            signalled = true;
            // The process may have just ended.
            let _ = kill(Pid::from_raw(i32::try_from(child.id())?), Signal::SIGTERM);
        }
        thread::sleep(POLL);
    }
}
