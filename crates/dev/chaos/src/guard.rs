//! Nothing of a run stays behind, even when the run itself is killed: a second process watches it.

use std::{env, path::Path, process::ExitCode, thread, time::Duration};

use anyhow::Context;
use local_stack::process::{Detached, Identity};
use xtask::{
    cleanup::{Keep, clean_up},
    workspace::Workspace,
};

const POLL: Duration = Duration::from_millis(200);
const FOLDER: &str = "chaos";

/// Whom to watch.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    pid: i32,
    start_time: u64,
}

/// Ends with the value.
pub(crate) struct Guard(Identity);

/// Where a run has its system.
pub(crate) fn workspace_of(base: &Workspace) -> Workspace {
    base.aside(FOLDER)
}

impl Guard {
    /// Watches this process.
    pub(crate) fn start(base: &Workspace) -> anyhow::Result<Self> {
        let pid = i32::try_from(std::process::id()).context("reading the own pid")?;
        let this = Identity::of(pid).context("this process has no identity")?;
        let program = env::current_exe().context("finding the own program")?;
        let mut detached = Detached::new(&program, Path::new("/dev/null"));
        detached
            .command()
            .current_dir(base.root())
            .arg("watchdog")
            .args([this.pid.to_string(), this.start_time.to_string()]);
        Ok(Self(detached.spawn()?))
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        // One that stays finds nothing to do, and ends by itself.
        let _ = self.0.kill();
    }
}

/// Waits for the end of a run, and ends what it left behind.
pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let watched = Identity {
        pid: arguments.pid,
        start_time: arguments.start_time,
    };
    while Identity::of(watched.pid) == Some(watched) {
        thread::sleep(POLL);
    }
    let base = Workspace::find()?;
    // Another run cleans up by itself, and its own system is not to be taken for remains.
    let _alone = base.lock("chaos")?;
    clean_up(&workspace_of(&base), Keep::Everything)?;
    Ok(ExitCode::SUCCESS)
}
