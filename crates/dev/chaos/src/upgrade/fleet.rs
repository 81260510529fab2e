//! The running processes, and how one is replaced.

use std::{
    collections::BTreeMap,
    process::Command,
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context, ensure};
use local_stack::{private, process::tail};
use rig::{
    interrupt::Interrupt,
    output::say,
    process::Process,
    programs::Programs,
    system::{Options, Source, System},
    workspace::Workspace,
};

use super::{
    earlier::Earlier,
    keys::Keys,
    plan::{self, Balancers, REPLACED},
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
    /// The load balancer of the gateways.
    pub(super) gateway: String,
    versions: Versions,
    /// The version of each process, by its name.
    running: BTreeMap<String, Version>,
    balancers: Balancers,
    interrupt: Interrupt,
}

impl Versions {
    pub(super) fn earlier_drains(&self) -> bool {
        self.earlier.as_ref().is_none_or(|earlier| earlier.drains)
    }

    pub(super) fn all_know_due(&self) -> bool {
        self.earlier
            .as_ref()
            .is_none_or(|earlier| earlier.knows_due)
    }

    fn of(&self, version: Version) -> &Programs {
        match (version, &self.earlier) {
            (Version::Earlier, Some(earlier)) => &earlier.programs,
            _ => &self.new,
        }
    }
}

impl Fleet {
    /// Starts two replicas of each process, in the earlier version if there is one.
    pub(super) fn start(
        workspace: &Workspace,
        versions: Versions,
        interrupt: &Interrupt,
    ) -> anyhow::Result<Self> {
        let version = match versions.earlier {
            Some(_) => Version::Earlier,
            None => Version::New,
        };
        let options = Options {
            replicas: REPLACED.map(|program| (program.to_owned(), 2)).into(),
            ..Options::own(Source::Copied(versions.of(version)))
        };
        let mut prepared = None;
        let system = System::start(workspace, &options, interrupt, |plan, _| {
            let balancers = plan::open_balancers(plan)?;
            prepared = Some((balancers, Keys::prepare(workspace, &mut plan.processes)?));
            Ok(())
        })?;
        let (balancers, keys) = prepared.context("the system was not prepared")?;
        let names = system.processes.iter().map(|one| one.name().to_owned());
        let fleet = Self {
            running: names.map(|name| (name, version)).collect(),
            gateway: system.gateway.clone(),
            system,
            keys,
            versions,
            balancers,
            interrupt: interrupt.clone(),
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
            let log = self.system.workspace.log(&format!("migrate-{service}"));
            let status = Command::new(program)
                .arg("migrate")
                .env("DATABASE_OWNER_URL", owner)
                .env("LOG_FORMAT", "text")
                .stdout(private::truncate(&log).context("creating a log")?)
                .status()
                .with_context(|| format!("running {service} migrate"))?;
            ensure!(
                status.success(),
                "{service} migrate failed:\n{}",
                tail(&log, 20)
            );
            let count = tail(&log, 1000).matches("migrated").count();
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
        for process in replicas.filter(|process| process.planned.program == program) {
            self.system.ensure_all_alive()?;
            self.stop(process)?;
            let mut planned = process.planned.clone();
            if version == Version::New {
                // Only the command `migrate` has the role that owns a schema. Early builds of 0.2.0 need it.
                planned.variables.remove("DATABASE_OWNER_URL");
            }
            self.system
                .spawn_as(process, &planned, self.versions.of(version))?;
            let started = self.system.wait_started(process);
            started.with_context(|| format!("replacing {}", process.name()))?;
            self.wait_balanced(process)?;
            self.running.insert(process.name().to_owned(), version);
        }
        Ok(())
    }

    fn stop(&self, process: &Process) -> anyhow::Result<()> {
        let is_new = self.running.get(process.name()) == Some(&Version::New);
        let drains = is_new || self.versions.earlier_drains();
        if let (false, Some((port, balancer))) = (drains, self.balancers.of(&process.planned)) {
            balancer.set_removed(port, true);
            thread::sleep(PAUSE_BEFORE_STOP);
        }
        let stopped = process.stop(&self.interrupt)?;
        self.interrupt.check()?;
        ensure!(
            stopped,
            "{} did not stop in time after SIGTERM",
            process.name()
        );
        Ok(())
    }

    /// Waits until a process gets connections, if others connect to it.
    fn wait_balanced(&self, process: &Process) -> anyhow::Result<()> {
        if let Some((port, balancer)) = self.balancers.of(&process.planned) {
            balancer.set_removed(port, false);
            let ready = balancer.wait_ready(port, BALANCED_LIMIT);
            ensure!(ready, "{} gets no connections", process.name());
        }
        Ok(())
    }
}
