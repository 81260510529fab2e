//! A load balancer for TCP connections.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use anyhow::Context;
use rig::client::Client;
use rig::process::Process;
use rig::sync::spawn;
use rig::system::System;
use rig::tcp_proxy::{TcpProxy, connect_to};

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
    proxies: Vec<TcpProxy>,
    /// By the names of the processes.
    replicas: HashMap<String, Arc<Replica>>,
}

/// A process that serves requests.
pub(super) struct Replica {
    port: u16,
    is_ready: AtomicBool,
    is_removed: AtomicBool,
}

impl Balancers {
    /// Opens the load balancer of a program. Returns its URL.
    fn open(&mut self, program: &str, processes: &[Process]) -> anyhow::Result<String> {
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
            self.replicas.insert(process.name.clone(), replica);
        }
        let next = AtomicUsize::new(0);
        // A caller whose connection is closed without a response counts a failed call.
        let connect = move || {
            let first = next.fetch_add(1, Ordering::Relaxed);
            choose(&targets, first).and_then(connect_to)
        };
        let proxy = TcpProxy::open_to(format!("balancer of {program}"), connect)?;
        let url = format!("http://127.0.0.1:{}", proxy.port());
        self.proxies.push(proxy);
        Ok(url)
    }

    /// What a process is to its load balancer, if it has one.
    pub(super) fn replica(&self, process: &Process) -> Option<&Replica> {
        self.replicas.get(&process.name).map(Arc::as_ref)
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

/// Asks a replica whether it is ready, again and again until this program ends.
fn check(replica: &Replica, client: &Client) {
    loop {
        replica.is_ready.store(client.is_ready(), Ordering::Relaxed);
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
    for (variable, program) in CALLS {
        let url = balancers.open(program, &system.processes)?;
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
