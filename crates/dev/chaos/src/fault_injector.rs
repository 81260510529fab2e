//! Injects the planned faults, and ends each one after its duration.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::Context;
use local_stack::{Identity, Stop, bootstrap};
use nix::sys::signal::Signal;
use rig::{Process, interrupt, join, lock, outln};

use crate::receiver::Receiver;
use crate::schedule::{self, FaultKind, InjectedFault, Parts, Target};
use crate::system::System;

pub(crate) struct FaultInjector<'run> {
    system: &'run System,
    receivers: &'run [Receiver],
    pub(crate) begin: Instant,
    pub(crate) faults: Vec<InjectedFault>,
    /// Processes that did not stop in time after SIGTERM.
    pub(crate) slow_stops: AtomicUsize,
}

impl<'run> FaultInjector<'run> {
    /// Plans the faults of a run that begins now.
    pub(crate) fn plan(
        system: &'run System,
        receivers: &'run [Receiver],
        seed: u64,
        duration: Duration,
    ) -> anyhow::Result<Self> {
        // How often each is hit, relative to the others: most often those that make and deliver decisions.
        let weight = |process: &Process| match process.program {
            "people-task-service" | "webhook-worker" => 4,
            "gateway" => 2,
            "demo-engine" => 0,
            _ => 1,
        };
        let servers = system.rig.servers()?;
        let processes = system.rig.processes.iter().enumerate();
        let parts = Parts {
            processes: processes
                .flat_map(|(index, process)| std::iter::repeat_n(index, weight(process)))
                .collect(),
            connections: system.proxies.len(),
            receivers: receivers.len(),
            brokers: servers.broker().count(),
            standby: servers.postgres_standby.is_some(),
        };
        Ok(Self {
            system,
            receivers,
            begin: Instant::now(),
            faults: schedule::plan_faults(seed, duration, &parts),
            slow_stops: AtomicUsize::new(0),
        })
    }

    /// Injects each fault at its time. Returns when the last one has ended.
    pub(crate) fn inject_all(&self) -> anyhow::Result<()> {
        thread::scope(|scope| {
            let mut threads: Vec<thread::ScopedJoinHandle<'_, anyhow::Result<()>>> = Vec::new();
            for fault in &self.faults {
                interrupt::sleep_until(self.begin + fault.start);
                if interrupt::came() {
                    break;
                }
                // Finished threads are joined early: each keeps its stack, and a long run has many.
                threads
                    .extract_if(.., |thread| thread.is_finished())
                    .try_for_each(|thread| join(thread)?)?;
                threads.push(scope.spawn(|| self.inject(fault)));
            }
            threads.into_iter().try_for_each(|thread| join(thread)?)
        })?;
        interrupt::check()
    }

    pub(crate) fn counts(&self) -> BTreeMap<FaultKind, usize> {
        let mut counts = BTreeMap::new();
        for fault in &self.faults {
            *counts.entry(fault.kind).or_default() += 1;
        }
        counts
    }

    fn inject(&self, fault: &InjectedFault) -> anyhow::Result<()> {
        let injected = match Target::of(fault.kind, fault.index) {
            Target::AllProcesses => self.kill_all(fault),
            Target::Process(_) => self.hit_process(fault),
            Target::Broker => self.hit_broker(fault),
            Target::Database => {
                self.announce(fault, "");
                let databases = &self.system.databases;
                databases.hit(fault.kind, || sleep(fault))
            }
            Target::Transaction => self.leave_transaction_open(fault),
            Target::Connection(_) => self.hit_connection(fault),
            Target::Receiver(_) => self.hit_receiver(fault),
        };
        injected.with_context(|| format!("injecting this fault: {}", fault.kind.name()))
    }

    fn hit_connection(&self, fault: &InjectedFault) -> anyhow::Result<()> {
        let proxy = self.system.proxies.get(fault.index);
        let proxy = proxy.context("no such proxy")?;
        self.announce(fault, &proxy.name);
        match fault.kind {
            FaultKind::CutConnection => proxy.cut(),
            _ => proxy.stall(),
        }
        sleep(fault);
        proxy.restore();
        Ok(())
    }

    fn hit_receiver(&self, fault: &InjectedFault) -> anyhow::Result<()> {
        let receiver = self.receivers.get(fault.index);
        let receiver = receiver.context("no such receiver")?;
        self.announce(fault, &receiver.name);
        match fault.kind {
            FaultKind::HangReceiver => receiver.hang(),
            _ => receiver.refuse(),
        }
        sleep(fault);
        receiver.restore();
        Ok(())
    }

    /// Keeps a snapshot, as a dump does, so that no deleted row can be removed meanwhile.
    fn leave_transaction_open(&self, fault: &InjectedFault) -> anyhow::Result<()> {
        self.announce(fault, "");
        let seconds = fault.duration.as_secs_f64();
        let script = format!(
            "BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM people_task.tasks; \
             SELECT pg_sleep({seconds}); COMMIT;"
        );
        if let Err(error) = bootstrap::execute(&self.system.databases.admin_url()?, &script) {
            // Another fault has stopped the database.
            outln!("          the open transaction ended early: {error}");
        }
        Ok(())
    }

    fn kill_all(&self, fault: &InjectedFault) -> anyhow::Result<()> {
        self.announce(fault, "");
        let all = || self.system.rig.processes.iter();
        let _locks: Vec<_> = all().map(|process| lock(&process.fault_lock)).collect();
        // All at the same time; then it waits until each one is gone.
        let killed: Vec<_> = all().filter_map(Process::kill_now).collect();
        killed.iter().try_for_each(Identity::kill)?;
        if !sleep(fault) {
            return Ok(());
        }
        all().try_for_each(|process| self.system.rig.spawn(process))
    }

    fn hit_process(&self, fault: &InjectedFault) -> anyhow::Result<()> {
        let process = self.system.rig.processes.get(fault.index);
        let process = process.context("no such process")?;
        let _lock = lock(&process.fault_lock);
        self.announce(fault, &process.name);
        match fault.kind {
            FaultKind::FreezeProcess => {
                process.signal(Signal::SIGSTOP);
                sleep(fault);
                process.signal(Signal::SIGCONT);
                return Ok(());
            }
            FaultKind::RestartProcess => {
                if !process.stop()? {
                    self.slow_stops.fetch_add(1, Ordering::Relaxed);
                    outln!("          {} did not stop in time", process.name);
                }
            }
            _ => process.kill()?,
        }
        if sleep(fault) {
            self.system.rig.spawn(process)?;
        }
        Ok(())
    }

    fn hit_broker(&self, fault: &InjectedFault) -> anyhow::Result<()> {
        let node = self.system.rig.servers()?.broker().nth(fault.index);
        let node = node.context("no such node")?;
        self.announce(fault, &format!("node {}", fault.index + 1));
        match fault.kind {
            FaultKind::CutOffBroker => {
                node.cut_off()?;
                sleep(fault);
                return node.reconnect();
            }
            FaultKind::KillBroker => node.stop(Stop::Kill)?,
            _ => node.stop(Stop::Graceful)?,
        }
        if sleep(fault) {
            node.spawn()?;
        }
        Ok(())
    }

    fn announce(&self, fault: &InjectedFault, target: &str) {
        let after = self.begin.elapsed().as_secs_f64();
        let name = fault.kind.name();
        let colon = if target.is_empty() { "" } else { ": " };
        let duration = fault.duration.as_secs_f64();
        outln!("{after:7.1} s  {name}{colon}{target}, for {duration:.1} s");
    }
}

/// Sleeps for as long as the fault lasts. Returns whether the run goes on.
fn sleep(fault: &InjectedFault) -> bool {
    interrupt::sleep_until(Instant::now() + fault.duration);
    !interrupt::came()
}
