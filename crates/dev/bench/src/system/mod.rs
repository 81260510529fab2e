//! The measured system: processes and servers of its own, started for one run.

pub(crate) mod database;
pub(crate) mod tables;
pub(crate) mod usage;

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::time::Duration;

use anyhow::ensure;
use local_stack::{Durability, Layout};
use rig::plan::Replicas;
use rig::programs::Source;
use rig::system::{self, Options};
use rig::workspace::{Profile, Workspace};

use self::database::Database;
use self::usage::Usage;

/// The process that delivers webhooks.
pub(crate) const WORKER: &str = "webhook-worker";
/// Another one, which only some scenarios start.
pub(crate) const SECOND_WORKER: &str = "webhook-worker-2";
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

pub(crate) struct System {
    pub(crate) rig: system::System,
    pub(crate) gateway: SocketAddr,
    pub(crate) database: Database,
}

impl System {
    /// Builds and starts everything, and waits until it is ready. On failure, the caller stops what was started.
    pub(crate) fn launch(workspace: &Workspace) -> anyhow::Result<Self> {
        let options = Options {
            // Every commit is written to disk, as in production.
            layout: Some(Layout {
                durability: Durability::Durable,
                ..Layout::SINGLE
            }),
            replicas: Replicas::from([(WORKER.to_owned(), 2), (GATEWAY.to_owned(), 2)]),
            later: &[SECOND_WORKER, SECOND_GATEWAY],
            ..Options::own(Source::Build(Profile::Release))
        };
        let mut rig = system::System::plan(workspace, &options)?;
        rig.set_all(&[("RATE_LIMIT", "off")]);
        rig.start()?;
        Ok(Self {
            gateway: rig.process(GATEWAY)?.address()?.parse()?,
            database: Database::new(&rig.backing.admin_url),
            rig,
        })
    }

    /// The processor time and memory of all processes.
    pub(crate) fn usage(&self) -> Usage {
        self.usage_with(&BTreeMap::new())
    }

    /// The processor time and memory of all processes and of `others`, which are named.
    pub(crate) fn usage_with(&self, others: &BTreeMap<String, i32>) -> Usage {
        let mut roots = self.running();
        if let Ok(servers) = self.rig.servers() {
            let servers = [
                ("postgres", servers.postgres.process()),
                ("rabbitmq", servers.rabbitmq.process()),
            ];
            for (name, identity) in servers {
                roots.extend(identity.map(|identity| (name.to_owned(), identity.pid)));
            }
        }
        roots.extend(others.clone());
        Usage::of(&roots)
    }

    /// The processes of the system, by name.
    pub(crate) fn processes(&self) -> BTreeMap<String, i32> {
        let mut running = self.running();
        running.retain(|name, _| PROCESSES.contains(&name.as_str()));
        running
    }

    fn running(&self) -> BTreeMap<String, i32> {
        let processes = self.rig.processes.iter();
        let running = processes.filter_map(|one| Some((one.name.clone(), one.identity()?.pid)));
        running.collect()
    }

    /// Asks a process to stop, and waits until it has.
    pub(crate) fn stop(&self, name: &str) -> anyhow::Result<()> {
        let stopped = self.rig.process(name)?.stop()?;
        ensure!(stopped, "{name} did not stop in time");
        Ok(())
    }

    /// Removes all tasks, and leaves one worker that knows none of them.
    pub(crate) async fn reset(&self) -> anyhow::Result<()> {
        for worker in [SECOND_WORKER, WORKER] {
            self.rig.process(worker)?.kill()?;
        }
        self.database.execute(tables::REMOVE_TASKS).await?;
        self.rig.start_process(WORKER).map(drop)
    }
}
