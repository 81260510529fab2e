//! Which fault comes when: drawn from the seed before the run begins.

use std::time::Duration;

use crate::chaos::dice::Dice;

/// Before the first fault: what is delivered here shows how fast the system is when it is well.
pub(crate) const CALM: Duration = Duration::from_secs(6);
/// The broker may not be taken away twice within this.
const BETWEEN_OUTAGES: Duration = Duration::from_secs(120);
/// From this duration on, an outage of the broker is a long one.
const LONG_RUN: Duration = Duration::from_secs(180);
const SHORTEST_GAP: Duration = Duration::from_millis(500);
const LONGEST_GAP: Duration = Duration::from_millis(3500);

/// What can go wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Kind {
    KillProcess,
    KillAllProcesses,
    RestartProcess,
    FreezeProcess,
    KillBroker,
    StopBroker,
    KillDatabase,
    CutLink,
    StallLink,
    RefuseAtReceiver,
    HangReceiver,
}

const KINDS: [Kind; 11] = [
    Kind::KillProcess,
    Kind::KillAllProcesses,
    Kind::RestartProcess,
    Kind::FreezeProcess,
    Kind::KillBroker,
    Kind::StopBroker,
    Kind::KillDatabase,
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
            Self::StopBroker => "RabbitMQ stopped",
            Self::KillDatabase => "kill -9 of Postgres",
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
            Self::RestartProcess => (0, 1_000),
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
            Self::KillBroker | Self::StopBroker => 12,
            Self::KillDatabase => 6,
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
}

impl Target {
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
    /// Places of processes; one that stands here more often is hit more often.
    pub(crate) processes: Vec<usize>,
    pub(crate) links: usize,
    pub(crate) receivers: usize,
}

/// Faults in the order of their starts. Each kind comes in turn, in an order that differs from round to
/// round; all have ended when the run has lasted `duration`.
pub(crate) fn draw(seed: u64, duration: Duration, parts: &Parts) -> Vec<Fault> {
    let mut drawing = Drawing {
        dice: Dice::of(seed, "faults"),
        duration,
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
    /// Until when each target is left alone.
    busy: Vec<(Target, Duration)>,
}

impl Drawing {
    /// The first of the round that is possible now. When none is, the next round begins early, and what
    /// is left of this one keeps its turn.
    fn next_of(&mut self, round: &mut Vec<Kind>, now: Duration, parts: &Parts) -> Option<Fault> {
        for _ in 0..2 {
            for place in 0..round.len() {
                let fault = self.fault(*round.get(place)?, now, parts);
                if fault.is_some() {
                    round.remove(place);
                    return fault;
                }
            }
            let first = now == CALM;
            let mut next = KINDS;
            self.dice.shuffle(&mut next);
            if first {
                // The longest one first, or a short run has no room for it.
                next.sort_by_key(|kind| *kind != Kind::StopBroker);
            }
            round.extend(next);
        }
        None
    }

    /// `None` when what would be hit is not to be hit now.
    fn fault(&mut self, kind: Kind, now: Duration, parts: &Parts) -> Option<Fault> {
        let place = match kind {
            Kind::KillProcess | Kind::RestartProcess | Kind::FreezeProcess => {
                *self.dice.choose(&parts.processes)?
            }
            Kind::CutLink | Kind::StallLink => self.dice.below(parts.links),
            Kind::RefuseAtReceiver | Kind::HangReceiver => self.dice.below(parts.receivers),
            _ => 0,
        };
        let target = match kind {
            Kind::KillProcess | Kind::RestartProcess | Kind::FreezeProcess => {
                Target::Process(place)
            }
            Kind::KillAllProcesses => Target::AllProcesses,
            Kind::KillBroker | Kind::StopBroker => Target::Broker,
            Kind::KillDatabase => Target::Database,
            Kind::CutLink | Kind::StallLink => Target::Link(place),
            Kind::RefuseAtReceiver | Kind::HangReceiver => Target::Receiver(place),
        };
        let meets = |(busy, until): &(Target, Duration)| target.meets(*busy) && *until > now;
        if self.busy.iter().any(meets) {
            return None;
        }
        let (from, to) = kind.lasts(self.duration >= LONG_RUN);
        let left = self.duration.saturating_sub(now);
        if from > left {
            return None;
        }
        let lasts = self.dice.between(from, to).min(left);
        let mut until = now + lasts + kind.recovery();
        if kind == Kind::StopBroker {
            // Otherwise a long run would be without a broker most of the time.
            until = until.max(now + BETWEEN_OUTAGES.min(self.duration / 2));
        }
        self.busy.push((target, until));
        Some(Fault {
            kind,
            place,
            start: now,
            lasts,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parts() -> Parts {
        Parts {
            processes: vec![0, 0, 1, 2],
            links: 5,
            receivers: 8,
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
            for kind in KINDS {
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
