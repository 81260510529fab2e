//! Kills a system instead of stopping it, and removes its files.

use std::fs;

use anyhow::bail;
use local_stack::{Servers, Stop};

use crate::{interrupt::Interrupt, output::say, processes, workspace::Workspace};

/// Which files to keep.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Keep {
    /// Logs and data, to investigate a failure.
    Everything,
    /// None.
    Nothing,
}

/// Runs a test that starts a system of its own in `workspace`, and removes the system before and after it. Logs and data
/// stay after a test that failed by itself.
pub fn with_own_system<T>(
    workspace: &Workspace,
    interrupt: &Interrupt,
    test: impl FnOnce() -> anyhow::Result<T>,
    passed: impl FnOnce(&T) -> bool,
) -> anyhow::Result<T> {
    // A killed run leaves its system.
    clean_up(workspace, Keep::Nothing)?;
    let outcome = test();
    say("stopping everything");
    let keep = if outcome.as_ref().is_ok_and(passed) || interrupt.came() {
        Keep::Nothing
    } else {
        Keep::Everything
    };
    clean_up(workspace, keep)?;
    outcome
}

/// Kills every process and server of a system.
pub fn clean_up(workspace: &Workspace, keep: Keep) -> anyhow::Result<()> {
    // The second pass finds processes that were starting during the first.
    for _ in 0..2 {
        for (_, identity) in processes::running(workspace)? {
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
