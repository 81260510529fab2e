//! One process of a system, across its restarts, and all processes of a workspace.

use std::sync::Mutex;
use std::time::Duration;

use anyhow::Context as _;
use local_stack::{Identity, Servers, Stop, holds_within};
use nix::sys::signal::Signal;

use crate::client::{Call, Client};
use crate::instance::{self, Variables};
use crate::interrupt;
use crate::output::say;
use crate::stack_file::Stack;
use crate::sync::lock;
use crate::workspace::Workspace;

/// A little more than the processes' own limit.
const STOP_LIMIT: Duration = Duration::from_secs(30);

/// A process that was started, or is going to be.
#[derive(Debug)]
pub struct Process {
    /// The name of the program. That of the second replica ends in `-2`.
    pub name: String,
    pub program: &'static str,
    /// Processes of a stage start together, when those of the previous stage are ready.
    pub stage: u8,
    /// The URL of its API. `None` for workers.
    pub url: Option<String>,
    /// The base URL of `/readyz` and `/metrics`.
    pub metrics: String,
    pub variables: Variables,
    /// Held while a fault hits the process: a process that stops slowly may meet the next fault.
    pub fault_lock: Mutex<()>,
    /// `None` unless it should run.
    pub(crate) identity: Mutex<Option<Identity>>,
}

impl Process {
    /// Its identity, unless it was stopped or never started.
    pub fn identity(&self) -> Option<Identity> {
        *lock(&self.identity)
    }

    pub fn is_alive(&self) -> bool {
        self.identity().is_some_and(|identity| identity.is_alive())
    }

    /// The host and port of its API.
    pub fn address(&self) -> anyhow::Result<&str> {
        let url = self.url.as_deref();
        let url = url.with_context(|| format!("{} has no API", self.name))?;
        Ok(url.trim_start_matches("http://"))
    }

    /// Sends a signal, if it runs.
    pub fn signal(&self, which: Signal) {
        if let Some(identity) = self.identity() {
            identity.signal(which);
        }
    }

    /// Whether it refuses an access token, if it is one of [`crate::System::token_verifiers`].
    pub fn refuses(&self, token: &str) -> bool {
        let path = match self.program {
            "user-service" => "/user",
            _ => "/people-task/tasks",
        };
        let client = Client::of_process(self.url.as_deref().unwrap_or_default());
        let response = client.once(&Call::new("GET", path).token(token));
        response.is_ok_and(|(status, ..)| status == 401)
    }

    /// Kills it, if it runs, without waiting for its end. It stays stopped.
    pub fn kill_now(&self) -> Option<Identity> {
        let identity = lock(&self.identity).take()?;
        identity.signal(Signal::SIGKILL);
        Some(identity)
    }

    /// Kills it, if it runs. It stays stopped.
    pub fn kill(&self) -> anyhow::Result<()> {
        let identity = lock(&self.identity).take();
        identity.map_or(Ok(()), |identity| identity.kill())
    }

    /// Asks it to stop, and kills it if it takes too long or a signal arrives. It stays stopped. Returns whether it stopped
    /// by itself.
    pub fn stop(&self) -> anyhow::Result<bool> {
        let Some(identity) = lock(&self.identity).take() else {
            return Ok(true);
        };
        identity.signal(Signal::SIGTERM);
        let ended = holds_within(STOP_LIMIT, || interrupt::came() || !identity.is_alive());
        identity.kill()?;
        Ok(ended)
    }
}

/// Asks all processes of a workspace to stop, and kills those that take too long. Returns how many there were.
pub(crate) fn stop_all(workspace: &Workspace) -> anyhow::Result<usize> {
    let all = instance::processes(workspace)?;
    for (_, identity) in &all {
        identity.signal(Signal::SIGTERM);
    }
    let any_alive = || all.iter().any(|(_, identity)| identity.is_alive());
    holds_within(STOP_LIMIT, || !any_alive());
    for (program, identity) in all.iter().filter(|(_, identity)| identity.is_alive()) {
        let limit = STOP_LIMIT.as_secs();
        say(&format!(
            "{program} did not stop within {limit} s and is killed"
        ));
        identity.kill()?;
    }
    Ok(all.len())
}

/// Stops all that runs in a workspace. Returns the number of processes, and whether servers ran.
pub fn stop_system(workspace: &Workspace) -> anyhow::Result<(usize, bool)> {
    let stopped = stop_all(workspace);
    let servers = Servers::find(&workspace.servers())?;
    let servers_ran = servers.as_ref().is_some_and(|servers| {
        servers.postgres.process().is_some() || servers.rabbitmq.process().is_some()
    });
    servers.map_or(Ok(()), |servers| servers.stop(Stop::Graceful))?;
    let stopped = stopped?;
    Stack::remove(workspace);
    Ok((stopped, servers_ran))
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use local_stack::{Detached, wait_until};

    use super::*;
    use crate::instance::MARKER;

    #[test]
    fn a_marked_process_is_found_and_stopped() {
        let folder = tempfile::tempdir().unwrap();
        // A workspace of its own, so that this test never finds a real system.
        let workspace = Workspace::at(folder.path());
        let mut sleep = Detached::new(Path::new("sleep"), &folder.path().join("log"));
        let mark = instance::mark(&workspace).unwrap();
        sleep.command.arg("300").env(MARKER, mark);
        let identity = sleep.spawn().unwrap();
        let found = wait_until(Duration::from_secs(5), || {
            instance::processes(&workspace)
                .unwrap()
                .into_iter()
                .find(|(program, _)| program == "sleep")
        });
        assert_eq!(found.unwrap().1, identity);
        assert_eq!(stop_all(&workspace).unwrap(), 1);
        assert!(!identity.is_alive());
    }
}
