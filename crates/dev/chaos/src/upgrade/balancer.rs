//! A load balancer for TCP connections.

use std::{
    collections::BTreeMap,
    sync::{
        Arc, Weak,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    thread,
    time::Duration,
};

use anyhow::Context;
use rig::{
    client::Client,
    process::Process,
    sync::spawn,
    system::System,
    tcp_proxy::{TcpProxy, connect_to},
};

use crate::{settings, system::port_of};

/// Between two checks of a replica.
const CHECK_INTERVAL: Duration = Duration::from_millis(100);

/// The programs that are replaced, in this order.
pub(super) const REPLACED: [&str; 6] = [
    "gateway",
    "user-service",
    "people-task-service",
    "deletion-worker",
    "notification-worker",
    "webhook-worker",
];

/// The settings that name another program.
const CALLS: [(&str, &str); 3] = [
    ("USER_SERVICE_URL", "user-service"),
    ("PEOPLE_TASK_SERVICE_URL", "people-task-service"),
    ("PUBLIC_URL", "gateway"),
];

/// The load balancers that callers of a program reach. Each sends a connection to the next replica that is ready.
#[derive(Default)]
pub(super) struct Balancers {
    /// By the names of the programs.
    proxies: BTreeMap<&'static str, TcpProxy>,
    /// By the names of the processes.
    replicas: BTreeMap<String, Arc<Replica>>,
}

/// A process that serves requests.
pub(super) struct Replica {
    port: u16,
    is_ready: AtomicBool,
    is_removed: AtomicBool,
}

impl Balancers {
    fn open(&mut self, program: &'static str, processes: &[Process]) -> anyhow::Result<()> {
        let mut targets = Vec::new();
        for process in processes.iter().filter(|one| one.program == program) {
            let port = process.url.as_deref().and_then(port_of);
            let replica = Arc::new(Replica {
                port: port.context("a process has no port")?,
                is_ready: AtomicBool::new(false),
                is_removed: AtomicBool::new(false),
            });
            let client = Client::of_process(&process.metrics);
            let checked = Arc::downgrade(&replica);
            spawn(move || check(&checked, &client)).context("starting a thread")?;
            targets.push(Arc::clone(&replica));
            self.replicas.insert(process.name.clone(), replica);
        }
        let next = AtomicUsize::new(0);
        // A caller whose connection is closed without a response counts a failed call.
        let connect = move || {
            let first = next.fetch_add(1, Ordering::Relaxed);
            choose(&targets, first).and_then(connect_to)
        };
        let proxy = TcpProxy::open_to(format!("balancer of {program}"), connect)?;
        self.proxies.insert(program, proxy);
        Ok(())
    }

    /// What a process is to its load balancer, if it has one.
    pub(super) fn replica(&self, process: &Process) -> Option<&Replica> {
        self.replicas.get(&process.name).map(Arc::as_ref)
    }

    fn url(&self, program: &str) -> anyhow::Result<String> {
        let proxy = self.proxies.get(program);
        let port = proxy.context("there is no load balancer")?.port();
        Ok(format!("http://127.0.0.1:{port}"))
    }
}

impl Replica {
    /// Sends it no more connections, or some again.
    pub(super) fn set_removed(&self, removed: bool) {
        self.is_removed.store(removed, Ordering::Relaxed);
    }

    pub(super) fn takes_connections(&self) -> bool {
        self.is_ready.load(Ordering::Relaxed) && !self.is_removed.load(Ordering::Relaxed)
    }
}

/// Asks a replica whether it is ready, again and again, for as long as its balancer exists.
fn check(replica: &Weak<Replica>, client: &Client) {
    while let Some(replica) = replica.upgrade() {
        replica.is_ready.store(client.is_ready(), Ordering::Relaxed);
        drop(replica);
        thread::sleep(CHECK_INTERVAL);
    }
}

/// The port of the first replica from `first` on that takes connections.
fn choose(replicas: &[Arc<Replica>], first: usize) -> Option<u16> {
    let count = replicas.len();
    let candidates = replicas.iter().cycle().skip(first % count.max(1));
    let mut candidates = candidates.take(count);
    let chosen = candidates.find(|replica| replica.takes_connections());
    chosen.map(|replica| replica.port)
}

/// Opens the load balancers, and lets the processes of the plan use them.
pub(super) fn open_balancers(system: &mut System) -> anyhow::Result<Balancers> {
    let mut balancers = Balancers::default();
    for (_, program) in CALLS {
        balancers.open(program, &system.processes)?;
    }
    for process in &mut system.processes {
        for (variable, program) in CALLS {
            if process.variables.contains_key(variable) {
                process.variables.insert(variable, balancers.url(program)?);
            }
        }
        let changed = settings::changed(settings::LONGEST_UPGRADE);
        process.variables.extend(changed);
        process.variables.insert("SHUTDOWN_DELAY", "2s".to_owned());
    }
    system.gateway = balancers.url("gateway")?;
    Ok(balancers)
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
