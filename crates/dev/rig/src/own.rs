//! Programs that start systems of their own, and remove them, even when a run is killed.

use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;
use std::{env, thread};

use anyhow::{Context as _, bail};
use local_stack::{Detached, EndOnDrop, Identity, Servers, private};

use crate::output::{complain, say};
use crate::paint::RED;
use crate::workspace::Workspace;
use crate::{instance, interrupt};

const POLL: Duration = Duration::from_millis(200);

/// The first argument of the second process, which cleans up when a run is killed.
const WATCHDOG: &str = "watchdog";

/// Runs the main function of a program, and prints its error, if there is one.
pub fn run(main: impl FnOnce() -> anyhow::Result<ExitCode>) -> ExitCode {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let outcome = match arguments.split_first() {
        Some((first, rest)) if first == WATCHDOG => watch(rest),
        _ => main(),
    };
    outcome.unwrap_or_else(|error| {
        print_error(&error);
        ExitCode::FAILURE
    })
}

fn print_error(error: &anyhow::Error) {
    complain(&format!("{RED}error:{RED:#} {error:#}"));
}

/// Runs a test that starts a system of its own in `.local/<folder>`, and removes the system before and after it. Logs and
/// data stay after a test that failed by itself. Concurrent runs wait for each other.
pub fn with_own_system<T>(
    folder: &str,
    test: impl FnOnce(&Workspace) -> anyhow::Result<T>,
    passed: impl FnOnce(&T) -> bool,
) -> anyhow::Result<T> {
    let base = Workspace::find()?;
    interrupt::watch()?;
    let _lock = base.lock(folder)?;
    let workspace = base.aside(folder);
    // A killed run leaves its system.
    remove(&workspace)?;
    let _watchdog = start_watchdog(&base, folder)?;
    let outcome = test(&workspace);
    let has_logs = workspace.local.join("log").is_dir();
    // The output of tests without processes ends with their summary.
    if has_logs {
        say("stopping everything");
    }
    let ended = if outcome.as_ref().is_ok_and(passed) || interrupt::came() || !has_logs {
        remove(&workspace)
    } else {
        say(&format!(
            "the logs of the processes are in .local/{folder}/log, those of the servers and their data in \
             .local/{folder}/servers"
        ));
        kill(&workspace)
    };
    // What the test found is not lost with a clean-up that fails.
    if let Err(error) = ended {
        print_error(&error.context("removing the test's system"));
    }
    outcome
}

/// Ends every process and server of a system that this or an earlier run started.
fn kill(workspace: &Workspace) -> anyhow::Result<()> {
    kill_processes(workspace)?;
    let servers = Servers::find(&workspace.servers())?;
    servers.map_or(Ok(()), |servers| servers.end())
}

/// The same, and removes logs and data.
fn remove(workspace: &Workspace) -> anyhow::Result<()> {
    kill_processes(workspace)?;
    Servers::discard(&workspace.servers())?;
    private::remove_folder(&workspace.local)
}

fn kill_processes(workspace: &Workspace) -> anyhow::Result<()> {
    // The second pass finds processes that were starting during the first.
    for _ in 0..2 {
        for (_, identity) in instance::processes(workspace)? {
            identity.kill()?;
        }
    }
    Ok(())
}

/// Starts a second process, which removes the system of this run in `folder` if this process is killed. One that survives
/// its end finds nothing to clean up and exits.
fn start_watchdog(base: &Workspace, folder: &str) -> anyhow::Result<EndOnDrop> {
    let pid = i32::try_from(std::process::id()).context("reading this process's pid")?;
    let this = Identity::of(pid).context("this process has no identity")?;
    let program = env::current_exe().context("finding this program")?;
    let mut detached = Detached::new(&program, Path::new("/dev/null"));
    detached
        .command
        .current_dir(&base.root)
        .args([WATCHDOG, folder])
        .args([this.pid.to_string(), this.start_time.to_string()]);
    detached.spawn().map(EndOnDrop)
}

/// Does the work of the second process: waits for the end of the run, and stops what it left behind.
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
    let _lock = base.lock(folder)?;
    remove(&base.aside(folder))?;
    Ok(ExitCode::SUCCESS)
}
