//! Making things go wrong, and well again.

use std::{
    collections::BTreeMap,
    sync::{
        Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use anyhow::Context;
use local_stack::Stop;
use nix::sys::signal::Signal;

use xtask::{interrupt::Interrupt, outln};

use crate::{
    door::locked,
    link::Link,
    receiver::Receiver,
    schedule::{Fault, Kind, Parts},
    system::{Process, System},
};

const POLL: Duration = Duration::from_millis(50);

/// How often each program is hit in comparison with the others. What takes part in decisions and their
/// delivery comes first.
const WEIGHTS: [(&str, usize); 6] = [
    ("people-task-service", 4),
    ("webhook-worker", 4),
    ("gateway", 2),
    ("user-service", 1),
    ("deletion-worker", 1),
    ("notification-worker", 1),
];

/// What the faults happen to, and what they came to.
pub(crate) struct Faults<'run> {
    pub(crate) system: &'run System,
    pub(crate) receivers: &'run [Receiver],
    pub(crate) interrupt: &'run Interrupt,
    pub(crate) begin: Instant,
    done: Mutex<BTreeMap<Kind, usize>>,
    /// Processes that did not stop in time when they were asked to.
    slow_stops: AtomicUsize,
}

/// What can be broken here.
pub(crate) fn parts(system: &System, receivers: &[Receiver]) -> Parts {
    let weight = |process: &Process| {
        let known = WEIGHTS
            .iter()
            .find(|(name, _)| *name == process.planned.program);
        known.map_or(0, |(_, weight)| *weight)
    };
    let processes = system.processes.iter().enumerate();
    Parts {
        processes: processes
            .flat_map(|(place, process)| std::iter::repeat_n(place, weight(process)))
            .collect(),
        links: system.links.len(),
        receivers: receivers.len(),
    }
}

fn ended(thread: thread::ScopedJoinHandle<'_, anyhow::Result<()>>) -> anyhow::Result<()> {
    let end = thread.join();
    end.unwrap_or_else(|_| Err(anyhow::anyhow!("a fault panicked")))
}

impl<'run> Faults<'run> {
    pub(crate) fn new(
        system: &'run System,
        receivers: &'run [Receiver],
        interrupt: &'run Interrupt,
        begin: Instant,
    ) -> Self {
        Self {
            system,
            receivers,
            interrupt,
            begin,
            done: Mutex::default(),
            slow_stops: AtomicUsize::new(0),
        }
    }

    /// Lets all of them happen, each at its time; returns when the last one is over.
    pub(crate) fn happen(&self, faults: &[Fault]) -> anyhow::Result<()> {
        thread::scope(|scope| {
            let mut threads: Vec<thread::ScopedJoinHandle<'_, anyhow::Result<()>>> = Vec::new();
            for fault in faults {
                self.sleep_until(self.begin + fault.start);
                if self.interrupt.came() {
                    break;
                }
                // A thread that nobody joins keeps its stack, and a run of hours has many.
                threads
                    .extract_if(.., |thread| thread.is_finished())
                    .try_for_each(ended)?;
                threads.push(scope.spawn(|| self.one(fault)));
            }
            threads.into_iter().try_for_each(ended)
        })?;
        self.interrupt.check()
    }

    pub(crate) fn done(&self) -> BTreeMap<Kind, usize> {
        locked(&self.done).clone()
    }

    pub(crate) fn slow_stops(&self) -> usize {
        self.slow_stops.load(Ordering::Relaxed)
    }

    fn one(&self, fault: &Fault) -> anyhow::Result<()> {
        let Fault {
            kind, place, lasts, ..
        } = *fault;
        let what = kind.name();
        let failed = || format!("doing this: {what}");
        *locked(&self.done).entry(kind).or_default() += 1;
        match kind {
            Kind::KillAllProcesses => {
                self.tell(fault, "");
                self.kill_all(lasts).with_context(failed)
            }
            Kind::KillProcess | Kind::RestartProcess | Kind::FreezeProcess => {
                let process = self.system.processes.get(place).with_context(failed)?;
                let _turn = locked(&process.turn);
                self.tell(fault, &process.planned.name);
                self.hit_process(kind, process, lasts).with_context(failed)
            }
            Kind::KillBroker
            | Kind::RestartBroker
            | Kind::StopBroker
            | Kind::KillDatabase
            | Kind::RestartDatabase => {
                self.tell(fault, "");
                self.hit_server(kind, lasts).with_context(failed)
            }
            Kind::CutLink | Kind::StallLink => {
                let link = self.system.links.get(place).with_context(failed)?;
                self.tell(fault, &link.name);
                self.hit_link(kind, link, lasts);
                Ok(())
            }
            Kind::RefuseAtReceiver | Kind::HangReceiver => {
                let receiver = self.receivers.get(place).with_context(failed)?;
                self.tell(fault, &receiver.name);
                self.hit_receiver(kind, receiver, lasts);
                Ok(())
            }
        }
    }

    fn hit_link(&self, kind: Kind, link: &Link, lasts: Duration) {
        if kind == Kind::CutLink {
            link.cut();
        } else {
            link.stall();
        }
        self.sleep(lasts);
        link.heal();
    }

    fn hit_receiver(&self, kind: Kind, receiver: &Receiver, lasts: Duration) {
        if kind == Kind::HangReceiver {
            receiver.hang();
        } else {
            receiver.refuse();
        }
        self.sleep(lasts);
        receiver.heal();
    }

    fn kill_all(&self, lasts: Duration) -> anyhow::Result<()> {
        let all = &self.system.processes;
        let _turns: Vec<_> = all.iter().map(|process| locked(&process.turn)).collect();
        // All at the same moment; what follows only makes sure of it, one after the other.
        for process in all {
            process.kill_now();
        }
        for process in all {
            self.system.take_down(process)?;
        }
        self.sleep(lasts);
        for process in all {
            self.bring_up(process)?;
        }
        Ok(())
    }

    fn hit_process(&self, kind: Kind, process: &Process, lasts: Duration) -> anyhow::Result<()> {
        match kind {
            Kind::FreezeProcess => {
                process.signal(Signal::SIGSTOP);
                self.sleep(lasts);
                process.signal(Signal::SIGCONT);
                return Ok(());
            }
            Kind::RestartProcess => {
                if !self.system.ask_to_stop(process, self.interrupt)? {
                    self.slow_stops.fetch_add(1, Ordering::Relaxed);
                    outln!("          {} did not stop in time", process.planned.name);
                }
            }
            _ => self.system.take_down(process)?,
        }
        self.sleep(lasts);
        self.bring_up(process)
    }

    fn bring_up(&self, process: &Process) -> anyhow::Result<()> {
        if self.interrupt.came() {
            return Ok(());
        }
        self.system.bring_up(process)
    }

    fn hit_server(&self, kind: Kind, lasts: Duration) -> anyhow::Result<()> {
        let servers = &self.system.servers;
        match kind {
            Kind::KillDatabase => servers.postgres.stop(Stop::Kill)?,
            Kind::RestartDatabase => servers.postgres.stop(Stop::Graceful)?,
            Kind::StopBroker | Kind::RestartBroker => servers.rabbitmq.stop(Stop::Graceful)?,
            _ => servers.rabbitmq.stop(Stop::Kill)?,
        }
        self.sleep(lasts);
        if self.interrupt.came() {
            return Ok(());
        }
        if matches!(kind, Kind::KillDatabase | Kind::RestartDatabase) {
            servers.postgres.spawn()?;
        } else {
            servers.rabbitmq.spawn()?;
        }
        Ok(())
    }

    fn tell(&self, fault: &Fault, target: &str) {
        let after = self.begin.elapsed().as_secs_f64();
        let name = fault.kind.name();
        let colon = if target.is_empty() { "" } else { ": " };
        let lasts = fault.lasts.as_secs_f64();
        outln!("{after:7.1} s  {name}{colon}{target}, for {lasts:.1} s");
    }

    fn sleep(&self, lasts: Duration) {
        self.sleep_until(Instant::now() + lasts);
    }

    /// Returns early when somebody wants the program to end.
    fn sleep_until(&self, end: Instant) {
        while Instant::now() < end && !self.interrupt.came() {
            thread::sleep(POLL.min(end.saturating_duration_since(Instant::now())));
        }
    }
}
