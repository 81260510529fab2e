//! A second process that cleans up when a run is killed.

use std::{env, path::Path, process::ExitCode, thread, time::Duration};

use anyhow::{Context as _, bail};
use local_stack::process::{Detached, Identity};

use crate::{
    cleanup::{Keep, clean_up},
    workspace::Workspace,
};

const POLL: Duration = Duration::from_millis(200);

/// The first argument of the second process.
const COMMAND: &str = "watchdog";

/// The running watchdog; dropping it ends the process.
pub(crate) struct Watchdog(Identity);

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
            .args([COMMAND, folder])
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

/// Does the work of the second process, if this is it: waits for the end of the run, and stops what it left behind. Each
/// program begins with this.
pub(crate) fn run_if_asked() -> Option<anyhow::Result<ExitCode>> {
    let mut arguments = env::args().skip(1);
    let is_asked = arguments.next().is_some_and(|first| first == COMMAND);
    is_asked.then(|| watch(&arguments.collect::<Vec<_>>()))
}

fn watch(arguments: &[String]) -> anyhow::Result<ExitCode> {
    let [folder, pid, start_time] = arguments else {
        bail!("a watchdog is told what to watch");
    };
    let watched = Identity {
        pid: pid.parse()?,
        start_time: start_time.parse()?,
    };
    while Identity::of(watched.pid) == Some(watched) {
        thread::sleep(POLL);
    }
    let base = Workspace::find()?;
    // Another run cleans up its own system; the lock keeps this run from mistaking it for remains.
    let _lock = base.lock_folder(folder)?;
    clean_up(&base.aside(folder), Keep::Everything)?;
    Ok(ExitCode::SUCCESS)
}
