//! A load balancer for TCP connections.

use std::{
    collections::BTreeMap,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    thread,
    time::Duration,
};

use anyhow::Context;
use local_stack::process::wait_until;
use rig::{
    client::Client,
    process::Process,
    sync::spawn,
    system::System,
    tcp_proxy::{TcpProxy, connect_to},
};

use crate::settings;

/// Between two checks of a replica.
const CHECK_INTERVAL: Duration = Duration::from_millis(100);

/// Sends each connection to the next replica that is ready.
pub(super) struct Balancer {
    proxy: TcpProxy,
    replicas: Arc<[Replica]>,
    ended: Arc<AtomicBool>,
}

struct Replica {
    port: u16,
    /// The base URL of its `/readyz`.
    metrics: String,
    is_ready: AtomicBool,
    is_removed: AtomicBool,
}

impl Balancer {
    fn open(program: &str, processes: &[Process]) -> anyhow::Result<Self> {
        let replicas = processes.iter().filter(|one| one.program == program);
        let replicas = replicas.filter_map(|process| {
            Some(Replica {
                port: port_of(process)?,
                metrics: process.metrics.clone(),
                is_ready: AtomicBool::new(false),
                is_removed: AtomicBool::new(false),
            })
        });
        let replicas: Arc<[Replica]> = replicas.collect();
        let ended = Arc::new(AtomicBool::new(false));
        for index in 0..replicas.len() {
            let (replicas, ended) = (Arc::clone(&replicas), Arc::clone(&ended));
            spawn(move || check(&replicas, index, &ended)).context("starting a thread")?;
        }
        let (targets, next) = (Arc::clone(&replicas), AtomicUsize::new(0));
        // A caller whose connection is closed without a response counts a failed call.
        let connect = move || {
            let first = next.fetch_add(1, Ordering::Relaxed);
            choose(&targets, first).and_then(connect_to)
        };
        Ok(Self {
            proxy: TcpProxy::open_to(format!("balancer of {program}"), connect)?,
            replicas,
            ended,
        })
    }

    /// Sends a replica no more connections, or some again.
    pub(super) fn set_removed(&self, port: u16, removed: bool) {
        for replica in self.replicas.iter().filter(|one| one.port == port) {
            replica.is_removed.store(removed, Ordering::Relaxed);
        }
    }

    /// Waits until a replica gets connections.
    pub(super) fn wait_ready(&self, port: u16, limit: Duration) -> bool {
        let mut replicas = self.replicas.iter();
        let replica = replicas.find(|one| one.port == port);
        replica.is_some_and(|one| {
            wait_until(limit, || one.takes_connections().then_some(())).is_some()
        })
    }
}

impl Drop for Balancer {
    fn drop(&mut self) {
        self.ended.store(true, Ordering::Relaxed);
    }
}

impl Replica {
    fn takes_connections(&self) -> bool {
        self.is_ready.load(Ordering::Relaxed) && !self.is_removed.load(Ordering::Relaxed)
    }
}

fn check(replicas: &[Replica], index: usize, ended: &AtomicBool) {
    let Some(replica) = replicas.get(index) else {
        return;
    };
    let client = Client::of_process(&replica.metrics);
    while !ended.load(Ordering::Relaxed) {
        let ready = client.is_ready();
        replica.is_ready.store(ready, Ordering::Relaxed);
        thread::sleep(CHECK_INTERVAL);
    }
}

/// The port of the first replica from `first` on that takes connections.
fn choose(replicas: &[Replica], first: usize) -> Option<u16> {
    let count = replicas.len();
    let candidates = replicas.iter().cycle().skip(first % count.max(1));
    let mut candidates = candidates.take(count);
    let chosen = candidates.find(|replica| replica.takes_connections());
    chosen.map(|replica| replica.port)
}

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

/// The load balancers that callers of a program reach, by its name.
pub(super) struct Balancers(BTreeMap<&'static str, Balancer>);

impl Balancers {
    /// The load balancer of a process that serves requests, and the process's port.
    pub(super) fn of(&self, process: &Process) -> Option<(u16, &Balancer)> {
        port_of(process).zip(self.0.get(process.program))
    }

    fn url(&self, program: &str) -> anyhow::Result<String> {
        let balancer = self.0.get(program).context("there is no load balancer")?;
        Ok(format!("http://127.0.0.1:{}", balancer.proxy.port()))
    }
}

/// Opens the load balancers, and lets the processes of the plan use them.
pub(super) fn open_balancers(system: &mut System) -> anyhow::Result<Balancers> {
    let mut balancers = Balancers(BTreeMap::new());
    for (_, program) in CALLS {
        balancers
            .0
            .insert(program, Balancer::open(program, &system.processes)?);
    }
    let codes = format!("{}/forgot-password", system.demo_engine);
    for process in &mut system.processes {
        for (variable, program) in CALLS {
            if process.variables.contains_key(variable) {
                process.variables.insert(variable, balancers.url(program)?);
            }
        }
        settings::apply(process, settings::LONGEST_UPGRADE, &codes, None);
        process.variables.insert("SHUTDOWN_DELAY", "2s".to_owned());
    }
    system.gateway = balancers.url("gateway")?;
    Ok(balancers)
}

/// The port of a process that serves requests.
fn port_of(process: &Process) -> Option<u16> {
    let url = process.url.as_deref()?;
    url.rsplit_once(':')?.1.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn replica(port: u16, is_ready: bool, is_removed: bool) -> Replica {
        Replica {
            port,
            metrics: String::new(),
            is_ready: AtomicBool::new(is_ready),
            is_removed: AtomicBool::new(is_removed),
        }
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
