//! A second process that cleans up when a run is killed.

use std::{env, fs::File, path::Path, process::ExitCode, thread, time::Duration};

use anyhow::Context;
use local_stack::process::{Detached, Identity};
use rig::{
    cleanup::{Keep, clean_up},
    workspace::Workspace,
};

const POLL: Duration = Duration::from_millis(200);

/// The folder of the system of a run of `chaos`, in `.local`.
pub(crate) const CHAOS: &str = "chaos";
/// That of `upgrade-test`.
pub(crate) const UPGRADE_TEST: &str = "upgrade-test/system";

/// The process to watch.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    folder: String,
    pid: i32,
    start_time: u64,
}

/// The running watchdog; dropping it ends the process.
pub(crate) struct Watchdog(Identity);

/// Waits until no other run uses this folder for its system.
pub(crate) fn lock(base: &Workspace, folder: &str) -> anyhow::Result<File> {
    base.lock(folder.split('/').next().unwrap_or_default())
}

impl Watchdog {
    /// Watches this process, whose system is in `folder`.
    pub(crate) fn start(base: &Workspace, folder: &str) -> anyhow::Result<Self> {
        let pid = i32::try_from(std::process::id()).context("reading this process's pid")?;
        let this = Identity::of(pid).context("this process has no identity")?;
        let program = env::current_exe().context("finding this program")?;
        let mut detached = Detached::new(&program, Path::new("/dev/null"));
        detached
            .command()
            .current_dir(base.root())
            .args(["watchdog", folder])
            .args([this.pid.to_string(), this.start_time.to_string()]);
        Ok(Self(detached.spawn()?))
    }
}

impl Drop for Watchdog {
    fn drop(&mut self) {
        // One that survives finds nothing to clean up and exits.
        let _ = self.0.kill();
    }
}

/// Waits for a run to end, and stops what it left behind.
pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let watched = Identity {
        pid: arguments.pid,
        start_time: arguments.start_time,
    };
    while Identity::of(watched.pid) == Some(watched) {
        thread::sleep(POLL);
    }
    let base = Workspace::find()?;
    // Another run cleans up its own system; the lock keeps this run from mistaking it for remains.
    let _lock = lock(&base, &arguments.folder)?;
    clean_up(&base.aside(&arguments.folder), Keep::Everything)?;
    Ok(ExitCode::SUCCESS)
}
