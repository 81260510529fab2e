//! `cargo xtask down`: stops the system.

use std::process::ExitCode;

use rig::{instance, output::say, stack_file::Stack, system, workspace::Workspace};

/// Stops the processes, then the servers. Some of them may have ended already.
pub(crate) fn run() -> anyhow::Result<ExitCode> {
    let workspace = Workspace::find()?;
    // First, so that a watching `up` knows that the processes are being stopped.
    Stack::remove(&workspace);
    if let Some(advice) = instance::unproven(&workspace) {
        say(&advice);
    }
    match system::stop(&workspace)? {
        (0, false) => say("nothing was running"),
        (count, _) => say(&format!(
            "stopped {count} processes and the servers; the data is in .local"
        )),
    }
    Ok(ExitCode::SUCCESS)
}
