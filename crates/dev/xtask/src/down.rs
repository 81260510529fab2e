//! `cargo xtask down`.

use std::process::ExitCode;

use local_stack::{Servers, Stop};

use crate::{launch::say, processes, stack_file::Stack, workspace::Workspace};

/// Stops the processes, then the servers; works when half of it is dead already.
pub(crate) fn run() -> anyhow::Result<ExitCode> {
    let workspace = Workspace::find()?;
    // First, so that an `up` that watches them knows that they do not end by themselves.
    Stack::remove(&workspace);
    let stopped = processes::stop_all(&workspace, &say)?;
    let mut servers_ran = false;
    if let Some(servers) = Servers::find(&workspace.servers())? {
        servers_ran = servers.postgres.is_running() || servers.rabbitmq.is_running();
        servers.stop(Stop::Graceful)?;
    }
    match (stopped, servers_ran) {
        (0, false) => say("nothing was running"),
        (count, _) => say(&format!(
            "stopped {count} processes and the servers; the data stay in .local"
        )),
    }
    Ok(ExitCode::SUCCESS)
}
