//! The processes of a system: starting them, finding them, stopping them.

use std::{
    collections::BTreeMap,
    path::PathBuf,
    time::{Duration, Instant},
};

use anyhow::{Context, bail};
use local_stack::{
    private,
    process::{Detached, Identity, tail, wait_until},
};
use nix::sys::signal::Signal;

use crate::{
    environment, http, instance,
    interrupt::Interrupt,
    output::say,
    plan::{LAST_STAGE, Plan, Planned},
    stream::Stream,
    workspace::Workspace,
};

const READY_LIMIT: Duration = Duration::from_secs(90);
/// A little more than the processes' own limit.
const STOP_LIMIT: Duration = Duration::from_secs(30);

/// Creates an empty log for each process, and follows the logs if they are to be shown.
pub fn prepare_logs(
    workspace: &Workspace,
    plan: &Plan,
    show: bool,
) -> anyhow::Result<Option<Stream>> {
    let logs: Vec<(String, PathBuf)> = plan
        .processes
        .iter()
        .map(|process| (process.name.clone(), workspace.log(&process.name)))
        .collect();
    for (_, log) in &logs {
        if let Some(folder) = log.parent() {
            private::create_folder(folder)?;
        }
        private::truncate(log)?;
    }
    Ok(show.then(|| Stream::follow(logs)))
}

/// Starts the processes stage by stage, each stage when the one before it is ready.
pub fn start_processes(
    workspace: &Workspace,
    plan: &Plan,
    programs: &BTreeMap<String, PathBuf>,
    interrupt: &Interrupt,
) -> anyhow::Result<Vec<(Planned, Identity)>> {
    say(&format!("starting {} processes", plan.processes.len()));
    let mut running = Vec::new();
    for stage in 0..=LAST_STAGE {
        let mut started = Vec::new();
        for process in plan.processes.iter().filter(|one| one.stage == stage) {
            started.push((process.clone(), spawn(workspace, process, programs)?));
        }
        wait_ready(workspace, &started, interrupt)?;
        running.extend(started);
    }
    Ok(running)
}

/// Starts one process without waiting until it is ready.
pub fn spawn(
    workspace: &Workspace,
    process: &Planned,
    programs: &BTreeMap<String, PathBuf>,
) -> anyhow::Result<Identity> {
    let program = programs
        .get(process.program)
        .with_context(|| format!("cargo did not build {}", process.program))?;
    let mut detached = Detached::new(program, &workspace.log(&process.name));
    let command = detached.command();
    command.current_dir(workspace.root());
    environment::apply(command, &process.variables);
    Ok(detached.spawn()?)
}

fn wait_ready(
    workspace: &Workspace,
    processes: &[(Planned, Identity)],
    interrupt: &Interrupt,
) -> anyhow::Result<()> {
    let agent = http::agent(Duration::from_secs(3));
    let end = Instant::now() + READY_LIMIT;
    for (process, identity) in processes {
        let log = workspace.log(&process.name);
        let end_of_log = || format!("the end of {}:\n{}", log.display(), tail(&log, 20));
        let left = end.saturating_duration_since(Instant::now());
        let ready = wait_until(left, || {
            if interrupt.came() {
                return Some(interrupt.check());
            }
            if !identity.is_alive() {
                let name = &process.name;
                let error = anyhow::anyhow!("{name} ended while it started; {}", end_of_log());
                return Some(Err(error));
            }
            http::is_ready(&agent, &process.metrics).then_some(Ok(()))
        });
        ready.with_context(|| {
            format!(
                "{} was not ready within {} s and reports {}; {}",
                process.name,
                READY_LIMIT.as_secs(),
                http::readiness(&agent, &process.metrics),
                end_of_log()
            )
        })??;
    }
    Ok(())
}

/// Returns all processes of the system, each with the name of its program.
pub fn running(workspace: &Workspace) -> anyhow::Result<Vec<(String, Identity)>> {
    instance::processes(workspace)
}

/// Asks all processes of the system to stop, and kills those that take too long. Returns how many there were.
pub fn stop_all(workspace: &Workspace) -> anyhow::Result<usize> {
    let all = running(workspace)?;
    for (_, identity) in &all {
        identity.signal(Signal::SIGTERM);
    }
    let any_alive = || all.iter().any(|(_, identity)| identity.is_alive());
    let ended = wait_until(STOP_LIMIT, || (!any_alive()).then_some(()));
    if ended.is_none() {
        for (program, identity) in all.iter().filter(|(_, identity)| identity.is_alive()) {
            let limit = STOP_LIMIT.as_secs();
            say(&format!(
                "{program} did not stop within {limit} s and is killed"
            ));
            identity.kill()?;
        }
    }
    Ok(all.len())
}

/// Fails if a process has ended.
pub fn ensure_all_alive(processes: &[(Planned, Identity)]) -> anyhow::Result<()> {
    let ended: Vec<&str> = processes
        .iter()
        .filter(|(_, identity)| !identity.is_alive())
        .map(|(planned, _)| planned.name.as_str())
        .collect();
    if !ended.is_empty() {
        bail!("{} ended unexpectedly", ended.join(", "));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::environment::MARKER;

    #[test]
    fn a_marked_process_is_found_and_stopped() {
        let folder = tempfile::tempdir().unwrap();
        // A workspace of its own, so that this test never finds a real system.
        let workspace = Workspace::at(folder.path());
        let mut sleep = Detached::new(Path::new("sleep"), &folder.path().join("log"));
        let mark = instance::mark(&workspace).unwrap();
        sleep.command().arg("300").env(MARKER, mark);
        let identity = sleep.spawn().unwrap();
        let found = wait_until(Duration::from_secs(5), || {
            running(&workspace)
                .unwrap()
                .into_iter()
                .find(|(program, _)| program == "sleep")
        });
        assert_eq!(found.unwrap().1, identity);
        assert_eq!(stop_all(&workspace).unwrap(), 1);
        assert!(!identity.is_alive());
    }
}
