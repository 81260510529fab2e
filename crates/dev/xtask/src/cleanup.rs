//! Kills a system of its own workspace, as opposed to stopping it, and removes its files.

use std::fs;

use anyhow::bail;
use local_stack::{Servers, Stop};

use crate::{processes, workspace::Workspace};

/// What stays on the disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Keep {
    /// Logs and data, to find the cause of a failure.
    Everything,
    /// No file.
    Nothing,
}

/// Kills every process and server of a system.
pub fn clean_up(workspace: &Workspace, keep: Keep) -> anyhow::Result<()> {
    // A process that was starting during the first pass is found by the second.
    for _ in 0..2 {
        for one in processes::running(workspace) {
            one.identity.kill()?;
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
