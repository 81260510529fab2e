//! `cargo xtask down`: stops the system.

use std::process::ExitCode;

use local_stack::{Servers, Stop};

use rig::{instance, output::say, processes, stack_file::Stack, workspace::Workspace};

/// Stops the processes, then the servers. Some of them may have ended already.
pub(crate) fn run() -> anyhow::Result<ExitCode> {
    let workspace = Workspace::find()?;
    // First, so that a watching `up` knows that the processes are being stopped.
    Stack::remove(&workspace);
    if let Some(advice) = instance::unproven(&workspace) {
        say(&advice);
    }
    let stopped = processes::stop_all(&workspace)?;
    let mut servers_ran = false;
    if let Some(servers) = Servers::find(&workspace.servers())? {
        servers_ran = servers.postgres.is_running() || servers.rabbitmq.is_running();
        servers.stop(Stop::Graceful)?;
    }
    match (stopped, servers_ran) {
        (0, false) => say("nothing was running"),
        (count, _) => say(&format!(
            "stopped {count} processes and the servers; the data is in .local"
        )),
    }
    Ok(ExitCode::SUCCESS)
}
