//! The schedule of faults: planned from the seed before the run begins.

use std::{collections::HashMap, time::Duration};

use clap::ValueEnum;
use rand::{RngExt as _, rngs::StdRng, seq::SliceRandom as _};

use crate::rng;

/// Time before the first fault, in which latencies are measured.
pub(crate) const CALM: Duration = Duration::from_secs(6);
/// At least this much time passes between two stops of the broker.
const BETWEEN_OUTAGES: Duration = Duration::from_secs(150);
/// In runs of at least this duration, the broker is stopped for a minute.
const LONG_RUN: Duration = Duration::from_secs(120);
/// After the first promotion of a standby, no other fault begins for this long, so that its effect is measured alone.
const UNDISTURBED: Duration = Duration::from_secs(15);
const SHORTEST_GAP: Duration = Duration::from_millis(500);
const LONGEST_GAP: Duration = Duration::from_millis(2500);

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, ValueEnum)]
pub(crate) enum FaultKind {
    KillProcess,
    KillAllProcesses,
    RestartProcess,
    FreezeProcess,
    KillBroker,
    RestartBroker,
    StopBroker,
    /// Only in a cluster.
    CutOffBroker,
    KillDatabase,
    RestartDatabase,
    /// Only with a standby.
    PromoteStandby,
    /// Only with a standby.
    StopStandby,
    OpenTransaction,
    CutConnection,
    StallConnection,
    RefuseAtReceiver,
    HangReceiver,
}

/// One round. Faults that can hit many targets occur several times.
fn round() -> impl Iterator<Item = FaultKind> {
    let kinds = FaultKind::value_variants().iter();
    kinds.flat_map(|kind| std::iter::repeat_n(*kind, kind.facts().1))
}

impl FaultKind {
    pub(crate) fn name(self) -> &'static str {
        self.facts().0
    }

    /// The name, how often a round has it, the shortest and longest duration in milliseconds, and for how many seconds its
    /// target is spared afterwards.
    fn facts(self) -> (&'static str, usize, (u64, u64), u64) {
        match self {
            Self::KillProcess => ("kill -9 of a process", 3, (0, 3_000), 2),
            Self::KillAllProcesses => ("kill -9 of all processes", 1, (0, 3_000), 4),
            Self::RestartProcess => ("restart by SIGTERM", 3, (0, 1_000), 2),
            Self::FreezeProcess => ("process frozen", 1, (1_000, 6_000), 2),
            Self::KillBroker => ("kill -9 of RabbitMQ", 1, (0, 3_000), 12),
            Self::RestartBroker => ("restart of RabbitMQ", 1, (0, 1_000), 12),
            Self::StopBroker => ("RabbitMQ stopped", 1, (15_000, 15_000), 12),
            Self::CutOffBroker => ("RabbitMQ cut off", 0, (5_000, 15_000), 12),
            Self::KillDatabase => ("kill -9 of Postgres", 1, (0, 3_000), 6),
            Self::RestartDatabase => ("restart of Postgres", 1, (0, 1_000), 6),
            // The killed server becomes the new standby meanwhile.
            Self::PromoteStandby => ("kill -9 of Postgres, standby promoted", 0, (0, 3_000), 15),
            Self::StopStandby => ("standby of Postgres stopped", 0, (5_000, 15_000), 6),
            Self::OpenTransaction => ("transaction left open", 1, (5_000, 15_000), 2),
            Self::CutConnection => ("connection cut", 5, (1_000, 6_000), 2),
            Self::StallConnection => ("connection stalled", 1, (2_000, 10_000), 2),
            Self::RefuseAtReceiver => ("receiver refuses", 1, (2_000, 15_000), 2),
            Self::HangReceiver => ("receiver hangs", 1, (2_000, 15_000), 2),
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Target {
    Process(usize),
    AllProcesses,
    Broker,
    Database,
    Transaction,
    Connection(usize),
    Receiver(usize),
}

impl Target {
    pub(crate) fn of(kind: FaultKind, index: usize) -> Self {
        use FaultKind::*;
        match kind {
            KillProcess | RestartProcess | FreezeProcess => Self::Process(index),
            KillAllProcesses => Self::AllProcesses,
            KillBroker | RestartBroker | StopBroker | CutOffBroker => Self::Broker,
            KillDatabase | RestartDatabase | PromoteStandby | StopStandby => Self::Database,
            OpenTransaction => Self::Transaction,
            CutConnection | StallConnection => Self::Connection(index),
            RefuseAtReceiver | HangReceiver => Self::Receiver(index),
        }
    }

    fn overlaps(self, other: Self) -> bool {
        match (self, other) {
            (Self::AllProcesses, Self::Process(_)) | (Self::Process(_), Self::AllProcesses) => true,
            _ => self == other,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct InjectedFault {
    pub(crate) kind: FaultKind,
    /// The index of the process, connection or receiver; 0 for a single target.
    pub(crate) index: usize,
    /// Time since the beginning of the run.
    pub(crate) start: Duration,
    pub(crate) duration: Duration,
}

#[derive(Debug, Clone)]
pub(crate) struct Parts {
    /// Indices of processes, sorted. After each process was hit once, one that occurs several times is hit
    /// more often.
    pub(crate) processes: Vec<usize>,
    pub(crate) connections: usize,
    pub(crate) receivers: usize,
    /// The nodes of the broker. One at a time is hit, so that the others are a majority.
    pub(crate) brokers: usize,
    pub(crate) standby: bool,
}

impl Parts {
    fn indices(&self, kind: FaultKind) -> Vec<usize> {
        match Target::of(kind, 0) {
            Target::Process(_) => self.processes.clone(),
            Target::Connection(_) => (0..self.connections).collect(),
            Target::Receiver(_) => (0..self.receivers).collect(),
            Target::Broker => (0..self.brokers).collect(),
            _ => vec![0],
        }
    }
}

/// Plans the faults of a run, in the order of their starts. All end within `duration`.
///
/// Every round has every kind of fault in random order. Each kind hits all of its targets in random order
/// before it hits one again. Two minutes are enough to hit all targets.
pub(crate) fn plan_faults(seed: u64, duration: Duration, parts: &Parts) -> Vec<InjectedFault> {
    let mut scheduler = Scheduler {
        parts,
        rng: rng::for_subject(seed, "faults"),
        duration,
        // The longest fault first: later it may not fit into a short run.
        waiting: vec![FaultKind::StopBroker],
        decks: HashMap::new(),
        busy: Vec::new(),
        next_outage: Duration::ZERO,
    };
    let mut faults = Vec::new();
    let mut now = CALM;
    if parts.standby {
        faults.extend(scheduler.plan(FaultKind::PromoteStandby, now));
        now += UNDISTURBED;
    }
    while now + SHORTEST_GAP < duration {
        faults.extend(scheduler.next_fault(now));
        now += scheduler.rng.random_range(SHORTEST_GAP..=LONGEST_GAP);
    }
    faults
}

struct Scheduler<'run> {
    parts: &'run Parts,
    rng: StdRng,
    duration: Duration,
    /// The rest of the round, and of those before it.
    waiting: Vec<FaultKind>,
    /// The remaining targets of each kind.
    decks: HashMap<FaultKind, Vec<usize>>,
    /// Until when each target is spared.
    busy: Vec<(Target, Duration)>,
    /// The broker is not stopped before.
    next_outage: Duration,
}

impl Scheduler<'_> {
    /// Returns the first fault of the round that is possible now. If none is, the next round is appended to
    /// the rest of this one.
    fn next_fault(&mut self, now: Duration) -> Option<InjectedFault> {
        self.busy.retain(|(_, until)| *until > now);
        for _ in 0..2 {
            for index in 0..self.waiting.len() {
                let fault = self.plan(*self.waiting.get(index)?, now);
                if fault.is_some() {
                    self.waiting.remove(index);
                    return fault;
                }
            }
            let mut next: Vec<_> = round().collect();
            next.extend((self.parts.brokers > 1).then_some(FaultKind::CutOffBroker));
            if self.parts.standby {
                next.extend([FaultKind::PromoteStandby, FaultKind::StopStandby]);
            }
            next.shuffle(&mut self.rng);
            // Faults that are still waiting are not added again.
            next.retain(|kind| !self.waiting.contains(kind));
            self.waiting.append(&mut next);
        }
        None
    }

    /// Returns `None` if no target of this kind is free or too little time is left.
    fn plan(&mut self, kind: FaultKind, now: Duration) -> Option<InjectedFault> {
        let (_, _, mut millis, recovery) = kind.facts();
        if kind == FaultKind::StopBroker && self.duration >= LONG_RUN {
            millis = (60_000, 60_000);
        }
        let [from, to] = [millis.0, millis.1].map(Duration::from_millis);
        let left = self.duration.saturating_sub(now);
        if from > left {
            return None;
        }
        let index = self.choose_target(kind, now)?;
        let duration = self.rng.random_range(from..=to).min(left);
        let until = now + duration + Duration::from_secs(recovery);
        if kind == FaultKind::StopBroker {
            // Otherwise the broker would be stopped for most of a long run.
            self.next_outage = now + BETWEEN_OUTAGES;
        }
        self.busy.push((Target::of(kind, index), until));
        Some(InjectedFault {
            kind,
            index,
            start: now,
            duration,
        })
    }

    fn choose_target(&mut self, kind: FaultKind, now: Duration) -> Option<usize> {
        let is_first = !self.decks.contains_key(&kind);
        let deck = self.decks.entry(kind).or_default();
        if deck.is_empty() {
            deck.extend(self.parts.indices(kind));
            if is_first {
                deck.dedup();
            }
            deck.shuffle(&mut self.rng);
        }
        if kind == FaultKind::StopBroker && self.next_outage > now {
            return None;
        }
        let is_free = |index: &usize| {
            let target = Target::of(kind, *index);
            !self.busy.iter().any(|(busy, _)| target.overlaps(*busy))
        };
        let free = deck.iter().position(is_free)?;
        Some(deck.remove(free))
    }
}

#[cfg(test)]
#[path = "schedule_tests.rs"]
mod tests;
