//! The running processes, and how one is replaced.

use std::{
    process::Command,
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context, bail, ensure};
use local_stack::{
    Durability, Servers,
    packages::{self, Need},
    ports, private,
    process::{Identity, tail, wait_until},
};
use nix::sys::signal::Signal;
use rig::{
    http,
    interrupt::Interrupt,
    output::say,
    own_system::{self, Layout, OwnServers},
    plan::{Plan, Planned},
    processes,
    programs::Programs,
    secrets::Secrets,
    stack_file::Admin,
    workspace::Workspace,
};

use super::{
    earlier::Earlier,
    keys::Keys,
    plan::{self, Balancers, REPLACED},
};
use crate::system;

/// A busy machine takes long to start a process.
const READY_LIMIT: Duration = Duration::from_secs(180);
/// Longer than `SHUTDOWN_DELAY` and `SHUTDOWN_GRACE` together.
const STOP_LIMIT: Duration = Duration::from_secs(40);
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
    workspace: Workspace,
    versions: Versions,
    members: Vec<Member>,
    balancers: Balancers,
    owners: [(&'static str, String); 2],
    interrupt: Interrupt,
    pub(super) keys: Keys,
    pub(super) gateway: String,
    pub(super) admin: Admin,
    /// Kept running until the end.
    _servers: Servers,
}

struct Member {
    planned: Planned,
    identity: Identity,
    version: Version,
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

/// Starts Postgres and RabbitMQ, and plans two replicas of each process.
fn start_servers(workspace: &Workspace) -> anyhow::Result<(OwnServers, Plan)> {
    let needs = [
        Need::ClientLibrary,
        Need::Postgres,
        Need::RabbitMq,
        Need::Psql,
    ];
    packages::ensure(&needs, &say)?;
    let secrets = Secrets::prepare(workspace)?;
    let own = own_system::start_servers(workspace, Durability::Discardable, Layout::SINGLE)?;
    let [gateway_port] = ports::free()?;
    let replicas = plan::replicas();
    let plan = Plan::new(workspace, &replicas, gateway_port, &secrets, &own.backing)?;
    Ok((own, plan))
}

impl Fleet {
    /// Starts two replicas of each process, in the earlier version if there is one.
    pub(super) fn start(
        workspace: &Workspace,
        versions: Versions,
        interrupt: &Interrupt,
    ) -> anyhow::Result<Self> {
        let (own, mut plan) = start_servers(workspace)?;
        let databases = own.backing.databases.clone();
        let balancers = plan::open_balancers(&mut plan)?;
        let keys = Keys::prepare(workspace, &mut plan.processes)?;
        processes::prepare_logs(workspace, &plan, false)?;
        let version = match versions.earlier {
            Some(_) => Version::Earlier,
            None => Version::New,
        };
        let programs = versions.of(version);
        let running = processes::start_processes(workspace, &plan, programs, interrupt)?;
        let member = |(planned, identity)| Member {
            planned,
            identity,
            version,
        };
        let fleet = Self {
            members: running.into_iter().map(member).collect(),
            workspace: workspace.clone(),
            versions,
            balancers,
            owners: [
                ("user-service", databases.users_owner),
                ("people-task-service", databases.people_task_owner),
            ],
            interrupt: interrupt.clone(),
            keys,
            gateway: plan.gateway.clone(),
            admin: Admin {
                username: plan.admin_username,
                password: plan.admin_password,
            },
            _servers: own.servers,
        };
        fleet
            .members
            .iter()
            .try_for_each(|member| fleet.wait_balanced(&member.planned))?;
        Ok(fleet)
    }

    /// Runs the migrations of the new version.
    pub(super) fn migrate(&self) -> anyhow::Result<()> {
        for (service, owner) in &self.owners {
            let start = Instant::now();
            let program = self
                .versions
                .new
                .get(*service)
                .context("a program is missing")?;
            let log = self.workspace.log(&format!("migrate-{service}"));
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
        for index in 0..self.members.len() {
            let is_replica = |member: &Member| member.planned.program == program;
            if self.members.get(index).is_some_and(is_replica) {
                self.ensure_all_alive()?;
                self.replace_one(index, version)?;
            }
        }
        Ok(())
    }

    fn replace_one(&mut self, index: usize, version: Version) -> anyhow::Result<()> {
        let member = self
            .members
            .get(index)
            .context("there is no such process")?;
        let name = &member.planned.name;
        self.stop(member)?;
        let mut planned = member.planned.clone();
        if version == Version::New {
            // Only the command `migrate` has the role that owns a schema. 0.1.0 and early builds of 0.2.0 need it.
            planned.variables.remove("DATABASE_OWNER_URL");
        }
        let programs = self.versions.of(version);
        let identity = processes::spawn(&self.workspace, &planned, programs)?;
        self.wait_ready(&member.planned, identity)
            .with_context(|| format!("replacing {name}"))?;
        if let Some(member) = self.members.get_mut(index) {
            member.identity = identity;
            member.version = version;
        }
        Ok(())
    }

    fn stop(&self, member: &Member) -> anyhow::Result<()> {
        let Member {
            planned,
            identity,
            version,
        } = member;
        let balanced = plan::port_of(planned).zip(self.balancers.get(planned.program));
        let drains = *version == Version::New || self.versions.earlier_drains();
        if let (false, Some((port, (_, balancer)))) = (drains, balanced) {
            balancer.set_removed(port, true);
            thread::sleep(PAUSE_BEFORE_STOP);
        }
        identity.signal(Signal::SIGTERM);
        ensure!(
            identity.wait(STOP_LIMIT),
            "{} did not stop within {} s after SIGTERM",
            planned.name,
            STOP_LIMIT.as_secs()
        );
        Ok(())
    }

    fn wait_ready(&self, planned: &Planned, identity: Identity) -> anyhow::Result<()> {
        let agent = http::agent(Duration::from_secs(3));
        let log = self.workspace.log(&planned.name);
        let ready = wait_until(READY_LIMIT, || {
            if let Err(interrupted) = self.interrupt.check() {
                return Some(Err(interrupted));
            }
            if !identity.is_alive() {
                return Some(Err(anyhow::anyhow!(
                    "it ended; its log:\n{}",
                    tail(&log, 20)
                )));
            }
            http::is_ready(&agent, &planned.metrics).then_some(Ok(()))
        });
        ready
            .with_context(|| format!("it was not ready in time; its log:\n{}", tail(&log, 20)))??;
        self.wait_balanced(planned)
    }

    /// Waits until a process gets connections, if others connect to it.
    fn wait_balanced(&self, planned: &Planned) -> anyhow::Result<()> {
        let balanced = plan::port_of(planned).zip(self.balancers.get(planned.program));
        let Some((port, (_, balancer))) = balanced else {
            return Ok(());
        };
        balancer.set_removed(port, false);
        let ready = balancer.wait_ready(port, READY_LIMIT);
        ensure!(ready, "{} gets no connections", planned.name);
        Ok(())
    }

    fn ensure_all_alive(&self) -> anyhow::Result<()> {
        let ended = self
            .members
            .iter()
            .find(|member| !member.identity.is_alive());
        if let Some(member) = ended {
            let log = self.workspace.log(&member.planned.name);
            bail!(
                "{} ended; its log:\n{}",
                member.planned.name,
                tail(&log, 20)
            );
        }
        Ok(())
    }

    /// Lines of the logs that report a panic.
    pub(super) fn panics(&self) -> anyhow::Result<Vec<String>> {
        let names = self.members.iter();
        system::panics(&self.workspace, names.map(|one| one.planned.name.as_str()))
    }
}
