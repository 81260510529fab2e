//! Removes a system that this or an earlier run started.

use std::fs;

use anyhow::bail;
use local_stack::{Servers, Stop};

use crate::{instance, workspace::Workspace};

/// Which files to keep.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Keep {
    /// Logs and data, to investigate a failure.
    Everything,
    /// None.
    Nothing,
}

/// Kills every process and server of a system.
pub(crate) fn clean_up(workspace: &Workspace, keep: Keep) -> anyhow::Result<()> {
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
