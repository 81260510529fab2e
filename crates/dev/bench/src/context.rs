//! The measured system: processes and servers of its own, started for one run. And what all scenarios do with it.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use local_stack::{Durability, Layout, client, with_database};
use rig::{Options, Person, Profile, Replicas, Source, System, Workspace, say};

use crate::http::{Pace, send};
use crate::report::{self, Limit};
use crate::tables::{self, Roles};
use crate::usage::Usage;

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

/// How long a statement may take. Adding a million rows takes minutes.
const STATEMENT_LIMIT: Duration = Duration::from_secs(15 * 60);
/// The option of pgbench for a transaction in which one row is changed, read and added.
pub(crate) const WRITE: &str = "-N";
/// The option of pgbench for a transaction in which one row is read.
pub(crate) const READ: &str = "-S";
const REST_AFTER_PGBENCH: Duration = Duration::from_millis(500);

/// How many requests first show how many fit into a time.
const SAMPLE: usize = 4;
/// How many then show it.
const SAMPLES: usize = 1_000;

pub(crate) struct Context {
    pub(crate) rig: System,
    pub(crate) gateway: SocketAddr,
    /// Creates tasks and decides them.
    pub(crate) user: Person,
    quick: bool,
    has_pgbench: bool,
}

/// What tells whether the system has settled, and how much it wrote.
pub(crate) struct DatabaseState {
    /// Deliveries to recorded webhooks that are not finished.
    pub(crate) waiting: u64,
    /// Bytes of the write-ahead log since the server was created.
    pub(crate) wal: f64,
}

impl Context {
    /// Builds and starts everything, and waits until it is ready. On failure, the caller stops what was started.
    pub(crate) fn start(workspace: &Workspace, quick: bool) -> Result<Self> {
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
        let mut rig = System::plan(workspace, &options)?;
        rig.set_all(&[("RATE_LIMIT", "off")]);
        rig.start()?;
        Ok(Self {
            gateway: rig.process(GATEWAY)?.address()?.parse()?,
            user: rig.client().sign_up_new("bench")?,
            rig,
            quick,
            has_pgbench: false,
        })
    }

    /// The size or the duration of a scenario.
    pub(crate) fn pick<T>(&self, full: T, quick: T) -> T {
        if self.quick { quick } else { full }
    }

    pub(crate) fn sign_up(&self) -> Result<Person> {
        self.rig.client().sign_up_new("bench")
    }

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

    pub(crate) fn stop(&self, name: &str) -> Result<()> {
        let stopped = self.rig.process(name)?.stop()?;
        ensure!(stopped, "{name} did not stop in time");
        Ok(())
    }

    /// Removes all tasks, and leaves one worker that knows none of them.
    pub(crate) async fn reset(&self) -> Result<()> {
        for worker in [SECOND_WORKER, WORKER] {
            self.rig.process(worker)?.kill()?;
        }
        self.execute(tables::REMOVE_TASKS).await?;
        self.rig.start_process(WORKER, &[]).map(drop)
    }

    /// Replaces all tasks by generated ones with descriptions of this length.
    pub(crate) async fn add_tasks(
        &self,
        count: usize,
        user: &Person,
        roles: Roles,
        description: usize,
    ) -> Result<()> {
        self.reset().await?;
        let tasks = tables::add_tasks(count, user, roles, description);
        self.execute(&tasks).await?;
        self.execute(tables::VACUUM_TASKS).await?;
        // The checkpoint after so many writes is not a part of what is measured.
        self.execute("CHECKPOINT").await
    }

    pub(crate) async fn execute(&self, sql: &str) -> Result<()> {
        self.query(sql).await.map(drop)
    }

    /// Runs a statement as the superuser, and returns its rows as lines of columns separated by `|`.
    pub(crate) async fn query(&self, sql: &str) -> Result<String> {
        let (url, sql) = (self.rig.backing.admin_url.clone(), sql.to_owned());
        on_thread(move || client::query(&url, &sql)).await
    }

    pub(crate) async fn database_state(&self) -> Result<DatabaseState> {
        let row = self.query(tables::STATE).await?;
        let (waiting, wal) = row
            .split_once('|')
            .with_context(|| format!("an unexpected row: {row}"))?;
        Ok(DatabaseState {
            waiting: waiting.parse()?,
            wal: wal.parse()?,
        })
    }

    /// Measures what pgbench reaches now with 32 clients. `script` is [`WRITE`] or [`READ`].
    pub(crate) async fn limit(&mut self, script: &str) -> Result<Limit> {
        let rate = self.pgbench_rate(script, 32).await?;
        Ok(Limit::new(&format!("pgbench {script}"), rate))
    }

    /// Measures how long a transaction of pgbench takes now with one client, in milliseconds.
    pub(crate) async fn latency_limit(&mut self, script: &str) -> Result<Limit> {
        let rate = self.pgbench_rate(script, 1).await?;
        let name = format!("pgbench {script}, 1 client");
        Ok(Limit::new(&name, 1e3 / rate))
    }

    /// Measures transactions per second. The first use creates the tables of pgbench, in a database of their own.
    async fn pgbench_rate(&mut self, script: &str, clients: usize) -> Result<f64> {
        if !self.has_pgbench {
            say("preparing pgbench");
            // An earlier scenario may have failed here.
            self.execute("DROP DATABASE IF EXISTS pgbench WITH (FORCE)")
                .await?;
            self.execute("CREATE DATABASE pgbench").await?;
            self.pgbench("-i -q -s 20".to_owned()).await?;
            // Otherwise the checkpoint after these writes would be part of the first measurement.
            self.execute("CHECKPOINT").await?;
            self.has_pgbench = true;
        }
        let seconds = self.pick(10, 3);
        let options = format!("{script} -M prepared -n -j 1 -c {clients} -T {seconds}");
        let printed = self.pgbench(options).await?;
        // Its server processes end a little later, and their time must not count for what follows.
        tokio::time::sleep(REST_AFTER_PGBENCH).await;
        let mut lines = printed.lines();
        let rate = lines.find_map(|line| line.strip_prefix("tps = ")?.split(' ').next());
        let rate = rate.with_context(|| format!("pgbench printed no rate: {printed}"))?;
        Ok(rate.parse()?)
    }

    /// Runs pgbench in its own database, and returns what it prints.
    async fn pgbench(&self, options: String) -> Result<String> {
        let url = with_database(&self.rig.backing.admin_url, "pgbench")?;
        on_thread(move || client::pgbench(&url, &options)).await
    }
}

/// Waits for a client program. One that takes too long ends with its server.
async fn on_thread(program: impl FnOnce() -> Result<String> + Send + 'static) -> Result<String> {
    let program = tokio::task::spawn_blocking(program);
    let ended = tokio::time::timeout(STATEMENT_LIMIT, program).await;
    ended.with_context(|| format!("it took longer than {} s", STATEMENT_LIMIT.as_secs()))??
}

/// Returns how often a request can be repeated in about `time`, as the rate of some shows, but at most `most` times.
pub(crate) async fn fitting(
    address: SocketAddr,
    request: &[u8],
    pace: Pace,
    time: Duration,
    most: usize,
) -> Result<usize> {
    let mut count = SAMPLE;
    // The first requests open connections, so the rate is that of more, if they are fast.
    for largest in [SAMPLES, most] {
        let calls = send(address, &vec![request; count], pace).await?;
        let each = Duration::from_secs_f64(1.0 / report::rate(&calls));
        let fitting = usize::try_from(time.as_nanos() / each.as_nanos().max(1))?;
        count = fitting.clamp(SAMPLE, largest.max(SAMPLE));
    }
    Ok(count)
}
