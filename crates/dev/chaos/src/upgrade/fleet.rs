//! The running processes, and how one is replaced.

use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, Instant};
use std::{fs, thread};

use anyhow::{Context, ensure};
use local_stack::private;
use local_stack::process::{output_of, wait_until};
use rig::interrupt;
use rig::output::say;
use rig::process::Process;
use rig::programs::{Programs, Source};
use rig::system::{Options, System};
use rig::workspace::Workspace;

use super::balancer::{Balancers, REPLACED, open_balancers};
use super::earlier::Earlier;

/// A busy machine takes long to start a process.
const BALANCED_LIMIT: Duration = Duration::from_secs(60);
/// A version without `SHUTDOWN_DELAY` gets no new connections for this time before SIGTERM, as `preStop` does.
const PAUSE_BEFORE_STOP: Duration = Duration::from_secs(1);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Version {
    Earlier,
    New,
}

pub(super) struct Fleet {
    pub(super) system: System,
    /// A test without an upgrade has only the new programs.
    earlier: Option<Earlier>,
    new: Programs,
    /// The version of all processes that are not replaced yet.
    running: Version,
    balancers: Balancers,
}

impl Fleet {
    /// Starts two replicas of each process, in the earlier version if there is one.
    pub(super) fn start(
        workspace: &Workspace,
        earlier: Option<Earlier>,
        new: Programs,
    ) -> anyhow::Result<Self> {
        let (running, programs) = match &earlier {
            Some(earlier) => (Version::Earlier, &earlier.programs),
            None => (Version::New, &new),
        };
        let options = Options {
            replicas: REPLACED.map(|program| (program.to_owned(), 2)).into(),
            ..Options::own(Source::Copied(programs))
        };
        let mut system = System::plan(workspace, &options)?;
        let balancers = open_balancers(&mut system)?;
        copy_keys(workspace, &mut system.processes)?;
        system.start()?;
        let fleet = Self {
            system,
            earlier,
            new,
            running,
            balancers,
        };
        let mut processes = fleet.system.processes.iter();
        processes.try_for_each(|process| fleet.wait_balanced(process))?;
        Ok(fleet)
    }

    /// Whether all processes keep requests that arrive at SIGTERM, also those of the earlier version.
    pub(super) fn drains(&self) -> bool {
        self.earlier.as_ref().is_none_or(|earlier| earlier.drains)
    }

    /// Runs the migrations of the new version.
    pub(super) fn migrate(&self) -> anyhow::Result<()> {
        let databases = &self.system.backing.databases;
        for (service, owner) in [
            ("user-service", &databases.users_owner),
            ("people-task-service", &databases.people_task_owner),
        ] {
            let start = Instant::now();
            let program = self.new.get(service);
            let program = program.context("a program is missing")?;
            let mut migrate = Command::new(program);
            migrate.arg("migrate").env("LOG_FORMAT", "text");
            let log = output_of(migrate.env("DATABASE_OWNER_URL", owner))?;
            let count = log.matches("migrated").count();
            let seconds = start.elapsed().as_secs_f64();
            say(&format!(
                "  {service} migrate: {count} migrations in {seconds:.1} s"
            ));
        }
        Ok(())
    }

    /// Replaces every process, one after the other.
    pub(super) fn replace_all(&mut self, version: Version) -> anyhow::Result<()> {
        let mut programs = REPLACED.iter();
        programs.try_for_each(|program| self.replace(program, version))?;
        self.running = version;
        Ok(())
    }

    /// Replaces the replicas of a program, one after the other.
    pub(super) fn replace(&self, program: &str, version: Version) -> anyhow::Result<()> {
        let replicas = self.system.processes.iter();
        for process in replicas.filter(|process| process.program == program) {
            self.system.ensure_all_alive()?;
            self.stop(process)?;
            let mut variables = process.variables.clone();
            if version == Version::New {
                // Only the command `migrate` has the role that owns a schema. Early builds of 0.2.0 need it.
                variables.remove("DATABASE_OWNER_URL");
            }
            let programs = match (version, &self.earlier) {
                (Version::Earlier, Some(earlier)) => &earlier.programs,
                _ => &self.new,
            };
            self.system.spawn_as(process, &variables, programs)?;
            let started = self.system.wait_started(process);
            started.with_context(|| format!("replacing {}", process.name))?;
            self.wait_balanced(process)?;
        }
        Ok(())
    }

    fn stop(&self, process: &Process) -> anyhow::Result<()> {
        let drains = self.running == Version::New || self.drains();
        if let (false, Some(replica)) = (drains, self.balancers.replica(process)) {
            replica.set_removed(true);
            thread::sleep(PAUSE_BEFORE_STOP);
        }
        let stopped = process.stop()?;
        interrupt::check()?;
        let name = &process.name;
        ensure!(stopped, "{name} did not stop in time after SIGTERM");
        Ok(())
    }

    /// Runs one step of a rotation. `key` is `token` or `webhook`.
    pub(super) fn rotate_key(&self, key: &str, step: &str) -> anyhow::Result<()> {
        let workspace = &self.system.workspace;
        let mut script = Command::new(workspace.root().join("deploy/rotate-keys"));
        output_of(script.args([key, step]).arg(keys(workspace))).map(drop)
    }

    /// Waits until a process gets connections, if others connect to it.
    fn wait_balanced(&self, process: &Process) -> anyhow::Result<()> {
        if let Some(replica) = self.balancers.replica(process) {
            replica.set_removed(false);
            let ready = || replica.takes_connections().then_some(());
            let ready = wait_until(BALANCED_LIMIT, ready);
            ready.with_context(|| format!("{} gets no connections", process.name))?;
        }
        Ok(())
    }
}

/// The settings that name the files of a signing key and of a second key.
const KEYS: [[&str; 2]; 2] = [
    ["TOKEN_SIGNING_KEY_FILE", "TOKEN_PREVIOUS_KEY_FILE"],
    [
        "WEBHOOK_SIGNING_KEY_FILE",
        "WEBHOOK_PREVIOUS_SIGNING_KEY_FILE",
    ],
];

/// The folder with the keys of a system.
fn keys(workspace: &Workspace) -> PathBuf {
    workspace.local().join("keys")
}

/// Copies the keys of the processes to files as `deploy/rotate-keys` names them, and lets the processes read these.
fn copy_keys(workspace: &Workspace, processes: &mut [Process]) -> anyhow::Result<()> {
    let folder = keys(workspace);
    private::create_folder(&folder).context("creating the folder of the keys")?;
    let file_of = |variable: &str| {
        let name = variable.to_lowercase().replace("_file", ".pem");
        folder.join(name).display().to_string()
    };
    for process in processes {
        for [signing, second] in KEYS {
            if let Some(key) = process.variables.get(signing) {
                let (copy, empty) = (file_of(signing), file_of(second));
                fs::copy(key, &copy).with_context(|| format!("copying {key}"))?;
                // An empty file is no key.
                fs::write(&empty, "").context("creating a key file")?;
                process.variables.insert(signing, copy);
                process.variables.insert(second, empty);
            }
        }
    }
    Ok(())
}
