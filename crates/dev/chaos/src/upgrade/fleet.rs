//! The running processes, and how one is replaced.

use std::{
    collections::BTreeMap,
    fs,
    path::PathBuf,
    process::Command,
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context, ensure};
use local_stack::{
    private,
    process::{output_of, wait_until},
};
use rig::{
    interrupt,
    output::say,
    process::Process,
    programs::{Programs, Source},
    system::{Options, System},
    workspace::Workspace,
};

use super::{
    balancer::{Balancers, REPLACED, open_balancers},
    earlier::Earlier,
};

/// A busy machine takes long to start a process.
const BALANCED_LIMIT: Duration = Duration::from_secs(60);
/// A version without `SHUTDOWN_DELAY` gets no new connections for this time before SIGTERM, as `preStop` does.
const PAUSE_BEFORE_STOP: Duration = Duration::from_secs(1);

/// Two versions of the programs. A test without an upgrade has only the new one.
pub(super) struct Versions {
    pub(super) earlier: Option<Earlier>,
    pub(super) new: Programs,
}

/// Which version a process runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Version {
    Earlier,
    New,
}

/// All processes.
pub(super) struct Fleet {
    pub(super) system: System,
    pub(super) keys: Keys,
    pub(super) versions: Versions,
    /// The version of each process, by its name.
    running: BTreeMap<String, Version>,
    balancers: Balancers,
}

impl Versions {
    fn of(&self, version: Version) -> &Programs {
        match (version, &self.earlier) {
            (Version::Earlier, Some(earlier)) => &earlier.programs,
            _ => &self.new,
        }
    }

    /// Whether all processes keep requests that arrive at SIGTERM, also those of the earlier version.
    pub(super) fn drain(&self) -> bool {
        self.earlier.as_ref().is_none_or(|earlier| earlier.drains)
    }
}

impl Fleet {
    /// Starts two replicas of each process, in the earlier version if there is one.
    pub(super) fn start(workspace: &Workspace, versions: Versions) -> anyhow::Result<Self> {
        let version = match versions.earlier {
            Some(_) => Version::Earlier,
            None => Version::New,
        };
        let options = Options {
            replicas: REPLACED.map(|program| (program.to_owned(), 2)).into(),
            ..Options::own(Source::Copied(versions.of(version)))
        };
        let mut system = System::plan(workspace, &options)?;
        let balancers = open_balancers(&mut system)?;
        let keys = Keys::prepare(workspace, &mut system.processes)?;
        system.start()?;
        let names = system.processes.iter().map(|process| process.name.clone());
        let fleet = Self {
            running: names.map(|name| (name, version)).collect(),
            system,
            keys,
            versions,
            balancers,
        };
        let mut processes = fleet.system.processes.iter();
        processes.try_for_each(|process| fleet.wait_balanced(process))?;
        Ok(fleet)
    }

    /// Runs the migrations of the new version.
    pub(super) fn migrate(&self) -> anyhow::Result<()> {
        let databases = &self.system.backing.databases;
        for (service, owner) in [
            ("user-service", &databases.users_owner),
            ("people-task-service", &databases.people_task_owner),
        ] {
            let start = Instant::now();
            let program = self.versions.new.get(service);
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
        REPLACED
            .iter()
            .try_for_each(|program| self.replace(program, version))
    }

    /// Replaces the replicas of a program, one after the other.
    pub(super) fn replace(&mut self, program: &str, version: Version) -> anyhow::Result<()> {
        let replicas = self.system.processes.iter();
        for process in replicas.filter(|process| process.program == program) {
            self.system.ensure_all_alive()?;
            self.stop(process)?;
            let mut variables = process.variables.clone();
            if version == Version::New {
                // Only the command `migrate` has the role that owns a schema. Early builds of 0.2.0 need it.
                variables.remove("DATABASE_OWNER_URL");
            }
            let programs = self.versions.of(version);
            self.system.spawn_as(process, &variables, programs)?;
            let started = self.system.wait_started(process);
            started.with_context(|| format!("replacing {}", process.name))?;
            self.wait_balanced(process)?;
            self.running.insert(process.name.clone(), version);
        }
        Ok(())
    }

    fn stop(&self, process: &Process) -> anyhow::Result<()> {
        let name = &process.name;
        let is_new = self.running.get(name) == Some(&Version::New);
        let drains = is_new || self.versions.drain();
        if let (false, Some(replica)) = (drains, self.balancers.replica(process)) {
            replica.set_removed(true);
            thread::sleep(PAUSE_BEFORE_STOP);
        }
        let stopped = process.stop()?;
        interrupt::check()?;
        ensure!(stopped, "{name} did not stop in time after SIGTERM");
        Ok(())
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

/// The settings that name a signing key and a second key, and their files, as `deploy/rotate-keys` names them.
const FILES: [[(&str, &str); 2]; 2] = [
    [
        ("TOKEN_SIGNING_KEY_FILE", "token_signing_key.pem"),
        ("TOKEN_PREVIOUS_KEY_FILE", "token_previous_key.pem"),
    ],
    [
        ("WEBHOOK_SIGNING_KEY_FILE", "webhook_signing_key.pem"),
        (
            "WEBHOOK_PREVIOUS_SIGNING_KEY_FILE",
            "webhook_previous_signing_key.pem",
        ),
    ],
];

/// A folder with the keys of a system.
pub(super) struct Keys {
    folder: PathBuf,
    script: PathBuf,
}

impl Keys {
    /// Copies the keys of the processes to a folder, and lets the processes read them there.
    pub(super) fn prepare(
        workspace: &Workspace,
        processes: &mut [Process],
    ) -> anyhow::Result<Self> {
        let folder = workspace.local().join("keys");
        private::create_folder(&folder).context("creating the folder of the keys")?;
        for process in processes {
            for [(signing, signing_file), (second, second_file)] in FILES {
                if let Some(key) = process.variables.get(signing) {
                    let copy = folder.join(signing_file);
                    fs::copy(key, &copy).with_context(|| format!("copying {key}"))?;
                    // An empty file is no key.
                    let empty = folder.join(second_file);
                    fs::write(&empty, "").context("creating a key file")?;
                    let path = |path: PathBuf| path.display().to_string();
                    process.variables.insert(signing, path(copy));
                    process.variables.insert(second, path(empty));
                }
            }
        }
        Ok(Self {
            folder,
            script: workspace.root().join("deploy/rotate-keys"),
        })
    }

    /// Runs one step of a rotation. `key` is `token` or `webhook`.
    pub(super) fn rotate(&self, key: &str, step: &str) -> anyhow::Result<()> {
        let mut script = Command::new(&self.script);
        output_of(script.args([key, step]).arg(&self.folder)).map(drop)
    }
}
