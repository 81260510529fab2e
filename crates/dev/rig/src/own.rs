//! Programs that start systems of their own, and remove them.

use std::process::ExitCode;

use crate::{
    cleanup::{Keep, clean_up},
    errln,
    interrupt::Interrupt,
    output::say,
    paint, watchdog,
    watchdog::Watchdog,
    workspace::Workspace,
};

/// Runs the main function of a program, and prints its error, if there is one.
pub fn run(main: impl FnOnce() -> anyhow::Result<ExitCode>) -> ExitCode {
    let outcome = watchdog::run_if_asked().unwrap_or_else(main);
    outcome.unwrap_or_else(|error| {
        errln!("{} {error:#}", paint::red("error:"));
        ExitCode::FAILURE
    })
}

/// Runs a test that starts a system of its own in `.local/<folder>`, and removes the system before and after it. Logs and
/// data stay after a test that failed by itself. Concurrent runs wait for each other.
pub fn with_own_system<T>(
    base: &Workspace,
    folder: &str,
    test: impl FnOnce(&Workspace, &Interrupt) -> anyhow::Result<T>,
    passed: impl FnOnce(&T) -> bool,
) -> anyhow::Result<T> {
    let interrupt = Interrupt::watch()?;
    let _lock = base.lock_folder(folder)?;
    let workspace = base.aside(folder);
    // A killed run leaves its system.
    clean_up(&workspace, Keep::Nothing)?;
    // It removes the system of this run if this process is killed.
    let _watchdog = Watchdog::start(base, folder)?;
    let outcome = test(&workspace, &interrupt);
    say("stopping everything");
    let has_logs = workspace.local().join("log").is_dir();
    let keep = if outcome.as_ref().is_ok_and(passed) || interrupt.came() || !has_logs {
        Keep::Nothing
    } else {
        Keep::Everything
    };
    clean_up(&workspace, keep)?;
    if keep == Keep::Everything {
        say(&format!(
            "the logs of the processes are in .local/{folder}/log, those of the servers and their data in \
             .local/{folder}/servers"
        ));
    }
    outcome
}
