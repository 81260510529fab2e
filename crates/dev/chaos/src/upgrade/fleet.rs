//! The running processes behind load balancers, and how one is replaced.

use std::collections::HashMap;
use std::path::PathBuf;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};
use std::{fs, thread};

use anyhow::{Context, ensure};
use local_stack::{holds_within, output_of, private};
use rig::{
    Client, Options, Process, Programs, Source, System, TcpProxy, Workspace, connect_to, interrupt,
    say, spawn,
};

use super::earlier::Earlier;
use crate::settings;
use crate::system::port_of;

/// The programs that are replaced, in this order.
const REPLACED: [&str; 6] = [
    "gateway",
    "notification-worker",
    "user-service",
    "people-task-service",
    "deletion-worker",
    "webhook-worker",
];

/// The settings that name another program, which callers reach through a load balancer.
const CALLS: [(&str, &str); 3] = [
    ("USER_SERVICE_URL", "user-service"),
    ("PEOPLE_TASK_SERVICE_URL", "people-task-service"),
    ("PUBLIC_URL", "gateway"),
];

/// Between two checks of a replica.
const CHECK_INTERVAL: Duration = Duration::from_millis(100);
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
    /// Those that serve requests, by the names of the processes.
    replicas: Replicas,
    /// Each sends a connection to the next replica that is ready.
    _balancers: Vec<TcpProxy>,
}

type Replicas = HashMap<String, Arc<Replica>>;

struct Replica {
    port: u16,
    is_ready: AtomicBool,
    is_removed: AtomicBool,
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
        let (balancers, replicas) = open_balancers(&mut system)?;
        copy_keys(workspace, &mut system.processes)?;
        system.start()?;
        let fleet = Self {
            system,
            earlier,
            new,
            running,
            replicas,
            _balancers: balancers,
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
        if let (false, Some(replica)) = (drains, self.replicas.get(&process.name)) {
            replica.is_removed.store(true, Ordering::Relaxed);
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
        let mut script = Command::new(workspace.root.join("deploy/rotate-keys"));
        output_of(script.args([key, step]).arg(keys(workspace))).map(drop)
    }

    /// Waits until a process gets connections, if others connect to it.
    fn wait_balanced(&self, process: &Process) -> anyhow::Result<()> {
        if let Some(replica) = self.replicas.get(&process.name) {
            replica.is_removed.store(false, Ordering::Relaxed);
            let ready = holds_within(BALANCED_LIMIT, || replica.takes_connections());
            ensure!(ready, "{} gets no connections", process.name);
        }
        Ok(())
    }
}

impl Replica {
    fn takes_connections(&self) -> bool {
        self.is_ready.load(Ordering::Relaxed) && !self.is_removed.load(Ordering::Relaxed)
    }
}

/// Opens the load balancers, and lets the processes of the plan use them.
fn open_balancers(system: &mut System) -> anyhow::Result<(Vec<TcpProxy>, Replicas)> {
    let (mut balancers, mut replicas) = (Vec::new(), Replicas::new());
    for (variable, program) in CALLS {
        let balancer = open_balancer(program, &system.processes, &mut replicas)?;
        let url = format!("http://127.0.0.1:{}", balancer.port());
        balancers.push(balancer);
        let variables = system.processes.iter_mut().map(|one| &mut one.variables);
        for setting in variables.filter_map(|variables| variables.get_mut(variable)) {
            setting.clone_from(&url);
        }
        if program == "gateway" {
            system.gateway = url;
        }
    }
    for process in &mut system.processes {
        let changed = settings::changed(settings::LONGEST_UPGRADE);
        process.variables.extend(changed);
        process.variables.insert("SHUTDOWN_DELAY", "2s".to_owned());
    }
    Ok((balancers, replicas))
}

/// Opens the load balancer of a program, and adds its replicas.
fn open_balancer(
    program: &str,
    processes: &[Process],
    replicas: &mut Replicas,
) -> anyhow::Result<TcpProxy> {
    let mut targets = Vec::new();
    for process in processes.iter().filter(|one| one.program == program) {
        let port = process.url.as_deref().and_then(port_of);
        let replica = Arc::new(Replica {
            port: port.context("a process has no port")?,
            is_ready: AtomicBool::new(false),
            is_removed: AtomicBool::new(false),
        });
        let client = Client::of_process(&process.metrics);
        let checked = Arc::clone(&replica);
        spawn(move || check(&checked, &client)).context("starting a thread")?;
        targets.push(Arc::clone(&replica));
        replicas.insert(process.name.clone(), replica);
    }
    let next = AtomicUsize::new(0);
    // A caller whose connection is closed without a response counts a failed call.
    TcpProxy::open_to(format!("balancer of {program}"), move || {
        let first = next.fetch_add(1, Ordering::Relaxed);
        choose(&targets, first).and_then(connect_to)
    })
}

/// The port of the first replica from `first` on that takes connections.
fn choose(replicas: &[Arc<Replica>], first: usize) -> Option<u16> {
    let count = replicas.len();
    let candidates = replicas.iter().cycle().skip(first % count.max(1));
    let mut candidates = candidates.take(count);
    let chosen = candidates.find(|replica| replica.takes_connections());
    chosen.map(|replica| replica.port)
}

/// Asks a replica whether it is ready, again and again until this program ends.
fn check(replica: &Replica, client: &Client) {
    loop {
        replica.is_ready.store(client.is_ready(), Ordering::Relaxed);
        thread::sleep(CHECK_INTERVAL);
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

fn keys(workspace: &Workspace) -> PathBuf {
    workspace.local.join("keys")
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

#[cfg(test)]
mod tests {
    use super::*;

    fn replica(port: u16, is_ready: bool, is_removed: bool) -> Arc<Replica> {
        Arc::new(Replica {
            port,
            is_ready: AtomicBool::new(is_ready),
            is_removed: AtomicBool::new(is_removed),
        })
    }

    #[test]
    fn only_replicas_that_are_ready_get_connections_in_turn() {
        let replicas = [
            replica(1, true, false),
            replica(2, false, false),
            replica(3, true, true),
            replica(4, true, false),
        ];
        let chosen = (0..5).map(|first| choose(&replicas, first));
        let expected = [1, 4, 4, 4, 1].map(Some);
        assert!(chosen.eq(expected));
        assert_eq!(choose(&replicas[1..3], 7), None);
        assert_eq!(choose(&[], 7), None);
    }
}
