//! The measured system: processes and servers of its own, started for one run.

pub(crate) mod database;
pub(crate) mod memory;
pub(crate) mod tables;
pub(crate) mod usage;

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};
use local_stack::packages::{self, Need};
use local_stack::process::Identity;
use local_stack::{Durability, Servers, ports};
use nix::sys::signal::Signal;
use rig::interrupt::Interrupt;
use rig::output::say;
use rig::own_system::{self, Layout};
use rig::plan::{Plan, Planned, Replicas};
use rig::processes;
use rig::programs;
use rig::secrets::Secrets;
use rig::workspace::{Profile, Workspace};

use self::database::Database;
use self::usage::Usage;

const WORKER: &str = "webhook-worker";
const SECOND_WORKER: &str = "webhook-worker-2";
/// The gateway of the system.
pub(crate) const GATEWAY: &str = "gateway";
/// A gateway that only some scenarios start, with another service behind it.
pub(crate) const SECOND_GATEWAY: &str = "gateway-2";
/// The flow engine, which the system only calls.
pub(crate) const ENGINE: &str = "demo-engine";
/// The processes that are the system, in the order of their dependencies.
pub(crate) const PROCESSES: [&str; 6] = [
    "user-service",
    "people-task-service",
    "deletion-worker",
    "notification-worker",
    WORKER,
    GATEWAY,
];
/// Until processes that were just started have come to rest.
pub(crate) const REST: Duration = Duration::from_secs(2);
const READY_LIMIT: Duration = Duration::from_secs(60);
/// A little more than the processes' own limit.
const STOP_LIMIT: Duration = Duration::from_secs(30);
const POLL: Duration = Duration::from_millis(5);

/// The running system.
pub(crate) struct System {
    workspace: Workspace,
    programs: BTreeMap<String, PathBuf>,
    servers: Servers,
    planned: Vec<Planned>,
    running: BTreeMap<String, Identity>,
    /// The gateway.
    pub(crate) gateway: SocketAddr,
    /// The database of the services.
    pub(crate) database: Database,
    /// The username and the password of the administrator.
    pub(crate) admin: (String, String),
}

/// One of the two processes that deliver webhooks. The second one runs only in some scenarios.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Worker {
    First,
    Second,
}

impl Worker {
    fn name(self) -> &'static str {
        match self {
            Self::First => WORKER,
            Self::Second => SECOND_WORKER,
        }
    }
}

impl System {
    /// Builds and starts everything, and waits until it is ready. On failure, the caller stops what was started.
    pub(crate) fn start(workspace: &Workspace, interrupt: &Interrupt) -> anyhow::Result<Self> {
        let needs = [
            Need::ClientLibrary,
            Need::Postgres,
            Need::RabbitMq,
            Need::Psql,
        ];
        packages::ensure(&needs, &say)?;
        let programs = programs::copy(workspace, programs::build(workspace, Profile::Release)?)?;
        interrupt.check()?;
        let secrets = Secrets::prepare(workspace)?;
        // Every commit is written to disk, as in production.
        let own = own_system::start_servers(workspace, Durability::Durable, Layout::SINGLE)?;
        interrupt.check()?;
        let [port] = ports::free()?;
        let replicas = Replicas::from([(WORKER.to_owned(), 2), (GATEWAY.to_owned(), 2)]);
        let mut plan = Plan::new(workspace, &replicas, port, &secrets, &own.backing)?;
        for process in &mut plan.processes {
            process.variables.insert("RATE_LIMIT", "off".to_owned());
        }
        processes::prepare_logs(workspace, &plan, false)?;
        let planned = plan.processes.clone();
        plan.processes
            .retain(|process| ![SECOND_WORKER, SECOND_GATEWAY].contains(&process.name.as_str()));
        let running = processes::start_processes(workspace, &plan, &programs, interrupt)?;
        let running = running
            .into_iter()
            .map(|(process, identity)| (process.name, identity));
        Ok(Self {
            workspace: workspace.clone(),
            programs,
            servers: own.servers,
            planned,
            running: running.collect(),
            gateway: ([127, 0, 0, 1], port).into(),
            database: Database::new(&own.admin_url)?,
            admin: (plan.admin_username, plan.admin_password),
        })
    }

    /// The processor time and memory of all processes.
    pub(crate) fn usage(&self) -> Usage {
        self.usage_with(&BTreeMap::new())
    }

    /// The processor time and memory of all processes and of `others`, which are named.
    pub(crate) fn usage_with(&self, others: &BTreeMap<String, i32>) -> Usage {
        let mut roots: BTreeMap<String, i32> = self
            .running
            .iter()
            .map(|(name, identity)| (name.clone(), identity.pid))
            .collect();
        let servers = [
            ("postgres", self.servers.postgres.process()),
            ("rabbitmq", self.servers.rabbitmq.process()),
        ];
        for (name, identity) in servers {
            roots.extend(identity.map(|identity| (name.to_owned(), identity.pid)));
        }
        roots.extend(others.clone());
        Usage::of(&roots)
    }

    /// The processes of the system, by name.
    pub(crate) fn processes(&self) -> BTreeMap<String, i32> {
        let running = self.running.iter();
        running
            .filter(|(name, _)| PROCESSES.contains(&name.as_str()))
            .map(|(name, identity)| (name.clone(), identity.pid))
            .collect()
    }

    /// Starts a worker and waits until it is ready.
    pub(crate) async fn start_worker(&mut self, worker: Worker) -> anyhow::Result<()> {
        self.start_process(worker.name()).await.map(drop)
    }

    /// Asks a worker to stop, and waits until it has.
    pub(crate) async fn stop_worker(&mut self, worker: Worker) -> anyhow::Result<()> {
        self.stop_process(worker.name()).await
    }

    /// Kills a worker, if it runs.
    pub(crate) async fn kill_worker(&mut self, worker: Worker) -> anyhow::Result<()> {
        self.end_process(worker.name(), Signal::SIGKILL).await
    }

    /// Kills a worker without waiting for its end.
    pub(crate) fn kill_now(&self, worker: Worker) -> anyhow::Result<()> {
        let identity = self.running.get(worker.name());
        let identity = identity.with_context(|| format!("{} is not running", worker.name()))?;
        identity.signal(Signal::SIGKILL);
        Ok(())
    }

    /// Starts the second gateway with another people-task service than the system's. It has the system's keys and
    /// revocations.
    pub(crate) async fn start_second_gateway(
        &mut self,
        people_task_service: SocketAddr,
    ) -> anyhow::Result<SocketAddr> {
        let planned = self.planned.iter_mut();
        let mut named = planned.filter(|process| process.name == SECOND_GATEWAY);
        let planned = named.next().context("no second gateway is planned")?;
        let url = format!("http://{people_task_service}");
        planned.variables.insert("PEOPLE_TASK_SERVICE_URL", url);
        let address = planned.variables.get("LISTEN_ADDRESS");
        let address = address.context("the second gateway has no address")?;
        let address = address.parse()?;
        self.start_process(SECOND_GATEWAY).await?;
        Ok(address)
    }

    /// Starts a process and waits until it is ready. Returns how long that took.
    pub(crate) async fn start_process(&mut self, name: &str) -> anyhow::Result<Duration> {
        let planned = self.planned.iter().find(|process| process.name == name);
        let planned = planned.with_context(|| format!("{name} is not planned"))?;
        let agent = rig::http::agent(Duration::from_secs(3));
        let start = Instant::now();
        let identity = processes::spawn(&self.workspace, planned, &self.programs)?;
        self.running.insert(name.to_owned(), identity);
        while !rig::http::is_ready(&agent, &planned.metrics) {
            ensure!(identity.is_alive(), "{name} ended while it started");
            let limit = READY_LIMIT.as_secs();
            ensure!(
                start.elapsed() < READY_LIMIT,
                "{name} was not ready within {limit} s"
            );
            tokio::time::sleep(POLL).await;
        }
        Ok(start.elapsed())
    }

    /// Asks a process to stop, and waits until it has.
    pub(crate) async fn stop_process(&mut self, name: &str) -> anyhow::Result<()> {
        self.end_process(name, Signal::SIGTERM).await
    }

    async fn end_process(&mut self, name: &str, signal: Signal) -> anyhow::Result<()> {
        let Some(identity) = self.running.remove(name) else {
            return Ok(());
        };
        identity.signal(signal);
        let end = Instant::now() + STOP_LIMIT;
        while identity.is_alive() {
            let limit = STOP_LIMIT.as_secs();
            ensure!(Instant::now() < end, "{name} did not stop within {limit} s");
            tokio::time::sleep(POLL).await;
        }
        Ok(())
    }

    /// Removes all tasks, and leaves one worker that knows none of them.
    pub(crate) async fn reset(&mut self) -> anyhow::Result<()> {
        self.kill_worker(Worker::Second).await?;
        self.kill_worker(Worker::First).await?;
        self.database.execute(tables::REMOVE_TASKS).await?;
        self.start_worker(Worker::First).await
    }
}
