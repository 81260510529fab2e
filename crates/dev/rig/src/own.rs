//! Commands that start a system of their own, and remove it.

use std::fs;

use anyhow::bail;
use local_stack::{Servers, Stop};

use crate::{
    instance, interrupt::Interrupt, output::say, watchdog::Watchdog, workspace::Workspace,
};

/// Which files to keep.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Keep {
    /// Logs and data, to investigate a failure.
    Everything,
    /// None.
    Nothing,
}

/// Runs a test that starts a system of its own in `.local/<folder>`, and removes the system before and after it. Logs and
/// data stay after a test that failed by itself. Concurrent runs wait for each other.
pub fn with_own_system<T>(
    base: &Workspace,
    folder: &str,
    test: impl FnOnce(&Workspace, &Interrupt) -> anyhow::Result<T>,
    passed: impl FnOnce(&T) -> bool,
) -> anyhow::Result<T> {
    let interrupt = Interrupt::watch()?;
    let _lock = base.lock_folder(folder)?;
    let workspace = base.aside(folder);
    // A killed run leaves its system.
    clean_up(&workspace, Keep::Nothing)?;
    // It removes the system of this run if this process is killed.
    let _watchdog = Watchdog::start(base, folder)?;
    let outcome = test(&workspace, &interrupt);
    say("stopping everything");
    let has_logs = workspace.local().join("log").is_dir();
    let keep = if outcome.as_ref().is_ok_and(passed) || interrupt.came() || !has_logs {
        Keep::Nothing
    } else {
        Keep::Everything
    };
    clean_up(&workspace, keep)?;
    if keep == Keep::Everything {
        say(&format!(
            "the logs of the processes are in .local/{folder}/log, those of the servers and their data in \
             .local/{folder}/servers"
        ));
    }
    outcome
}

/// Kills every process and server of a system.
pub fn clean_up(workspace: &Workspace, keep: Keep) -> anyhow::Result<()> {
    // The second pass finds processes that were starting during the first.
    for _ in 0..2 {
        for (_, identity) in instance::processes(workspace)? {
            identity.kill()?;
        }
    }
    if keep == Keep::Everything {
        if let Some(servers) = Servers::find(&workspace.servers())? {
            servers.stop(Stop::Kill)?;
        }
        return Ok(());
    }
    Servers::discard(&workspace.servers())?;
    match fs::remove_dir_all(workspace.local()) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            bail!("removing {}: {error}", workspace.local().display())
        }
        _ => Ok(()),
    }
}
