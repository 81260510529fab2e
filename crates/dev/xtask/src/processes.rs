//! Our processes among all of the machine.

use std::{fs, time::Duration};

use local_stack::process::{Identity, wait_until};
use nix::sys::signal::Signal;

use crate::{environment::MARKER, workspace::Workspace};

/// A little more than the processes' own default grace.
const STOP_LIMIT: Duration = Duration::from_secs(30);

/// A process that carries this project's mark.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Ours {
    pub(crate) program: String,
    pub(crate) identity: Identity,
}

/// All processes of this project's system, whoever started them.
pub(crate) fn running(workspace: &Workspace) -> Vec<Ours> {
    let mark = format!("{MARKER}={}", workspace.local().display());
    fs::read_dir("/proc")
        .into_iter()
        .flatten()
        .filter_map(|entry| {
            let entry = entry.ok()?;
            let pid = entry.file_name().to_str()?.parse().ok()?;
            let environment = fs::read(entry.path().join("environ")).ok()?;
            if !environment
                .split(|byte| *byte == 0)
                .any(|variable| variable == mark.as_bytes())
            {
                return None;
            }
            let program = fs::read_to_string(entry.path().join("comm"))
                .ok()?
                .trim()
                .to_owned();
            Identity::of(pid).map(|identity| Ours { program, identity })
        })
        .collect()
}

/// Asks all of them to stop, waits for what they are doing, and kills those that take too long.
/// Says how many there were.
pub(crate) fn stop_all(workspace: &Workspace, say: &dyn Fn(&str)) -> anyhow::Result<usize> {
    let all = running(workspace);
    for one in &all {
        one.identity.signal(Signal::SIGTERM);
    }
    let gone = wait_until(STOP_LIMIT, || {
        (!all.iter().any(|one| one.identity.is_alive())).then_some(())
    });
    if gone.is_none() {
        for one in all.iter().filter(|one| one.identity.is_alive()) {
            say(&format!(
                "{} did not stop within {} s and is killed",
                one.program,
                STOP_LIMIT.as_secs()
            ));
            one.identity.kill()?;
        }
    }
    Ok(all.len())
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use local_stack::process::Detached;

    use super::*;

    #[test]
    fn a_marked_process_is_found_and_stopped() {
        let folder = tempfile::tempdir().unwrap();
        // A folder of its own for a mark, so that this never meets a system that really runs.
        let elsewhere = Workspace::at(folder.path());
        let mut sleep = Detached::new(Path::new("sleep"), &folder.path().join("log"));
        sleep.command().arg("300").env(MARKER, elsewhere.local());
        let identity = sleep.spawn().unwrap();
        let found = wait_until(Duration::from_secs(5), || {
            running(&elsewhere)
                .into_iter()
                .find(|one| one.program == "sleep")
        });
        assert_eq!(found.unwrap().identity, identity);
        assert_eq!(stop_all(&elsewhere, &|_| ()).unwrap(), 1);
        assert!(!identity.is_alive());
    }
}
