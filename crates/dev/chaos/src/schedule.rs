//! Which fault comes when: drawn from the seed before the run begins.

use std::{collections::HashMap, time::Duration};

use crate::dice::Dice;

/// Before the first fault: what is delivered here shows how fast the system is when it is well.
pub(crate) const CALM: Duration = Duration::from_secs(6);
/// The broker may not be taken away twice within this.
const BETWEEN_OUTAGES: Duration = Duration::from_secs(150);
/// From this duration on, an outage of the broker is a long one.
const LONG_RUN: Duration = Duration::from_secs(120);
const SHORTEST_GAP: Duration = Duration::from_millis(500);
const LONGEST_GAP: Duration = Duration::from_millis(2500);

/// What can go wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Kind {
    KillProcess,
    KillAllProcesses,
    RestartProcess,
    FreezeProcess,
    KillBroker,
    RestartBroker,
    StopBroker,
    KillDatabase,
    RestartDatabase,
    CutLink,
    StallLink,
    RefuseAtReceiver,
    HangReceiver,
}

/// One round. What can happen to many parts comes several times.
const ROUND: [Kind; 21] = [
    Kind::KillProcess,
    Kind::KillProcess,
    Kind::KillProcess,
    Kind::KillAllProcesses,
    Kind::RestartProcess,
    Kind::RestartProcess,
    Kind::RestartProcess,
    Kind::FreezeProcess,
    Kind::KillBroker,
    Kind::RestartBroker,
    Kind::StopBroker,
    Kind::KillDatabase,
    Kind::RestartDatabase,
    Kind::CutLink,
    Kind::CutLink,
    Kind::CutLink,
    Kind::CutLink,
    Kind::CutLink,
    Kind::StallLink,
    Kind::RefuseAtReceiver,
    Kind::HangReceiver,
];

impl Kind {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::KillProcess => "kill -9 of a process",
            Self::KillAllProcesses => "kill -9 of all processes",
            Self::RestartProcess => "restart by SIGTERM",
            Self::FreezeProcess => "process frozen",
            Self::KillBroker => "kill -9 of RabbitMQ",
            Self::RestartBroker => "restart of RabbitMQ",
            Self::StopBroker => "RabbitMQ stopped",
            Self::KillDatabase => "kill -9 of Postgres",
            Self::RestartDatabase => "restart of Postgres",
            Self::CutLink => "connection cut",
            Self::StallLink => "connection stalled",
            Self::RefuseAtReceiver => "receiver refuses",
            Self::HangReceiver => "receiver hangs",
        }
    }

    /// How long it lasts, at least and at most.
    fn lasts(self, long_run: bool) -> (Duration, Duration) {
        let (from, to) = match self {
            Self::KillProcess | Self::KillAllProcesses | Self::KillBroker | Self::KillDatabase => {
                (0, 3_000)
            }
            Self::RestartProcess | Self::RestartBroker | Self::RestartDatabase => (0, 1_000),
            Self::FreezeProcess | Self::CutLink => (1_000, 6_000),
            Self::StopBroker if long_run => (60_000, 60_000),
            Self::StopBroker => (15_000, 15_000),
            Self::StallLink => (2_000, 10_000),
            Self::RefuseAtReceiver | Self::HangReceiver => (2_000, 15_000),
        };
        (Duration::from_millis(from), Duration::from_millis(to))
    }

    /// For how long its target is left alone after it.
    fn recovery(self) -> Duration {
        Duration::from_secs(match self {
            Self::KillBroker | Self::RestartBroker | Self::StopBroker => 12,
            Self::KillDatabase | Self::RestartDatabase => 6,
            Self::KillAllProcesses => 4,
            _ => 2,
        })
    }
}

/// What a fault happens to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Target {
    Process(usize),
    AllProcesses,
    Broker,
    Database,
    Link(usize),
    Receiver(usize),
    /// Not a part: while it is busy, the broker is not stopped for long.
    LongOutage,
}

impl Target {
    fn of(kind: Kind, place: usize) -> Self {
        match kind {
            Kind::KillProcess | Kind::RestartProcess | Kind::FreezeProcess => Self::Process(place),
            Kind::KillAllProcesses => Self::AllProcesses,
            Kind::KillBroker | Kind::RestartBroker | Kind::StopBroker => Self::Broker,
            Kind::KillDatabase | Kind::RestartDatabase => Self::Database,
            Kind::CutLink | Kind::StallLink => Self::Link(place),
            Kind::RefuseAtReceiver | Kind::HangReceiver => Self::Receiver(place),
        }
    }

    fn meets(self, other: Self) -> bool {
        match (self, other) {
            (Self::AllProcesses, Self::Process(_)) | (Self::Process(_), Self::AllProcesses) => true,
            _ => self == other,
        }
    }
}

/// One thing that goes wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Fault {
    pub(crate) kind: Kind,
    /// Which process, link or receiver; 0 where there is only one.
    pub(crate) place: usize,
    /// After the beginning of the run.
    pub(crate) start: Duration,
    pub(crate) lasts: Duration,
}

/// What there is to break.
#[derive(Debug, Clone)]
pub(crate) struct Parts {
    /// Places of processes, equal ones beside each other; one that stands here more often is hit more
    /// often, once all have had a turn.
    pub(crate) processes: Vec<usize>,
    pub(crate) links: usize,
    pub(crate) receivers: usize,
}

impl Parts {
    fn places(&self, kind: Kind) -> Vec<usize> {
        match Target::of(kind, 0) {
            Target::Process(_) => self.processes.clone(),
            Target::Link(_) => (0..self.links).collect(),
            Target::Receiver(_) => (0..self.receivers).collect(),
            _ => vec![0],
        }
    }
}

/// Faults in the order of their starts. Each kind comes in turn, in an order that differs from round to
/// round, and so does each process, link and receiver within a kind: two minutes are enough for all. All
/// have ended when the run has lasted `duration`.
pub(crate) fn draw(seed: u64, duration: Duration, parts: &Parts) -> Vec<Fault> {
    let mut drawing = Drawing {
        dice: Dice::of(seed, "faults"),
        duration,
        decks: HashMap::new(),
        busy: Vec::new(),
    };
    let mut faults = Vec::new();
    let mut round: Vec<Kind> = Vec::new();
    let mut now = CALM;
    while now + SHORTEST_GAP < duration {
        if let Some(fault) = drawing.next_of(&mut round, now, parts) {
            faults.push(fault);
        }
        now += drawing.dice.between(SHORTEST_GAP, LONGEST_GAP);
    }
    faults
}

struct Drawing {
    dice: Dice,
    duration: Duration,
    /// The places of each kind that are still to have their turn.
    decks: HashMap<Kind, Vec<usize>>,
    /// Until when each target is left alone.
    busy: Vec<(Target, Duration)>,
}

impl Drawing {
    /// The first of the round that is possible now. When none is, the next round begins early, and what
    /// is left of this one keeps its turn.
    fn next_of(&mut self, round: &mut Vec<Kind>, now: Duration, parts: &Parts) -> Option<Fault> {
        self.busy.retain(|(_, until)| *until > now);
        for _ in 0..2 {
            for place in 0..round.len() {
                let fault = self.fault(*round.get(place)?, now, parts);
                if fault.is_some() {
                    round.remove(place);
                    return fault;
                }
            }
            let first = now == CALM;
            let mut next = ROUND;
            self.dice.shuffle(&mut next);
            if first {
                // The longest one first, or a short run has no room for it.
                next.sort_by_key(|kind| *kind != Kind::StopBroker);
            }
            // What had no turn for long does not pile up.
            let waits: Vec<Kind> = round.clone();
            round.extend(next.into_iter().filter(|kind| !waits.contains(kind)));
        }
        None
    }

    /// `None` when what would be hit is not to be hit now.
    fn fault(&mut self, kind: Kind, now: Duration, parts: &Parts) -> Option<Fault> {
        let (from, to) = kind.lasts(self.duration >= LONG_RUN);
        let left = self.duration.saturating_sub(now);
        if from > left {
            return None;
        }
        let place = self.place(kind, now, parts)?;
        let lasts = self.dice.between(from, to).min(left);
        let until = now + lasts + kind.recovery();
        if kind == Kind::StopBroker {
            // Otherwise a long run would be without a broker most of the time.
            self.busy.push((Target::LongOutage, now + BETWEEN_OUTAGES));
        }
        self.busy.push((Target::of(kind, place), until));
        Some(Fault {
            kind,
            place,
            start: now,
            lasts,
        })
    }

    /// The next place of this kind that may be hit now: each has had its turn before any comes again.
    fn place(&mut self, kind: Kind, now: Duration, parts: &Parts) -> Option<usize> {
        let mut deck = self.decks.remove(&kind);
        if deck.as_ref().is_none_or(Vec::is_empty) {
            let mut all = parts.places(kind);
            if deck.is_none() {
                all.dedup();
            }
            self.dice.shuffle(&mut all);
            deck = Some(all);
        }
        let mut deck = deck.unwrap_or_default();
        let free = deck
            .iter()
            .position(|place| !self.is_busy(kind, *place, now));
        let place = free.map(|free| deck.remove(free));
        self.decks.insert(kind, deck);
        place
    }

    fn is_busy(&self, kind: Kind, place: usize, now: Duration) -> bool {
        let target = Target::of(kind, place);
        let meets = |(busy, until): &(Target, Duration)| {
            let long = kind == Kind::StopBroker && *busy == Target::LongOutage;
            (target.meets(*busy) || long) && *until > now
        };
        self.busy.iter().any(meets)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    fn parts() -> Parts {
        Parts {
            processes: vec![0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 3, 4, 5],
            links: 15,
            receivers: 9,
        }
    }

    #[test]
    fn a_seed_repeats_its_faults() {
        let minute = Duration::from_secs(60);
        assert_eq!(draw(1, minute, &parts()), draw(1, minute, &parts()));
        assert_ne!(draw(1, minute, &parts()), draw(2, minute, &parts()));
    }

    #[test]
    fn a_minute_has_every_kind_and_all_end_in_it() {
        let minute = Duration::from_secs(60);
        for seed in 0..200 {
            let faults = draw(seed, minute, &parts());
            for kind in ROUND {
                let there = faults.iter().any(|fault| fault.kind == kind);
                assert!(there, "seed {seed} has no {}", kind.name());
            }
            assert!(
                faults
                    .iter()
                    .all(|fault| fault.start >= CALM && fault.start + fault.lasts <= minute)
            );
        }
    }

    #[test]
    fn two_minutes_hit_every_process_and_link_and_leave_a_minute_without_a_broker() {
        for seed in 0..500 {
            let faults = draw(seed, Duration::from_secs(120), &parts());
            let hit = |kind: Kind| {
                let places = faults.iter().filter(|fault| fault.kind == kind);
                places
                    .map(|fault| fault.place)
                    .collect::<BTreeSet<_>>()
                    .len()
            };
            let wanted = [
                (Kind::KillProcess, 6),
                (Kind::RestartProcess, 6),
                (Kind::CutLink, 15),
            ];
            for (kind, count) in wanted {
                assert_eq!(hit(kind), count, "seed {seed}: {}", kind.name());
            }
            for kind in ROUND {
                assert!(hit(kind) > 0, "seed {seed} has no {}", kind.name());
            }
            let minute = |fault: &&Fault| {
                fault.kind == Kind::StopBroker && fault.lasts == Duration::from_secs(60)
            };
            assert_eq!(faults.iter().filter(minute).count(), 1, "seed {seed}");
        }
    }

    #[test]
    fn some_faults_overlap_but_not_on_one_target() {
        let faults = draw(5, Duration::from_secs(60), &parts());
        let overlap = |a: &Fault, b: &Fault| b.start < a.start + a.lasts;
        assert!(faults.windows(2).any(|pair| overlap(&pair[0], &pair[1])));
        for (number, one) in faults.iter().enumerate() {
            let later = &faults[number + 1..];
            let links = [Kind::CutLink, Kind::StallLink];
            assert!(!later.iter().any(|other| {
                links.contains(&one.kind)
                    && links.contains(&other.kind)
                    && one.place == other.place
                    && overlap(one, other)
            }));
        }
    }
}
