use std::collections::{HashSet, VecDeque};
use std::sync::Arc;
use std::time::{Duration, Instant};

use values::DeliveryId;

use crate::deliveries::LaneParts;
use crate::deliveries::worker::due_store::DueRow;
use crate::deliveries::worker::schedule::RetryDecision;

/// The concurrent requests of a lane that is not known. Each response adds one, until the limit of the host.
const FIRST_REQUESTS: u32 = 4;
/// What is loaded in advance: what the lane can send in this time, and no more than this many.
const LOADED_AHEAD: (Duration, u32) = (Duration::from_millis(50), 256);
/// Identifiers of due deliveries that are kept for a lane. The others are found in the database.
const MAX_KNOWN: usize = 20_000;
/// Retries after a longer pause are not remembered.
const REMEMBERED: Duration = Duration::from_mins(1);
/// The pause before a retry begins when the end of the attempt is recorded, which takes about so long.
const RECORDING: Duration = Duration::from_millis(50);
/// For how long a lane is not loaded that has a row that cannot be read.
const ASIDE: Duration = Duration::from_mins(1);
/// A request that takes so long is slow.
pub(super) const SLOW: Duration = Duration::from_millis(500);
/// How long a lane that had a slow request counts as slow.
const SLOW_FOR: Duration = Duration::from_mins(10);
/// After this many failed attempts in a row a lane or an origin is tried with one request at a time.
const FAILURES: u32 = 5;
/// The pause before the first of these requests, and the longest one.
const TRIAL_PAUSE: (Duration, Duration) = (Duration::from_millis(250), Duration::from_secs(5));
/// For how long after it could be tried an open circuit counts, if nothing waits for it.
const FORGOTTEN_AFTER: Duration = Duration::from_secs(60);

/// The due deliveries of one owner to one origin.
#[derive(Default)]
pub(super) struct Lane {
    pub(super) origin: Arc<str>,
    pub(super) host: Arc<str>,
    pub(super) owner: Arc<str>,
    /// Deliveries that messages named, and that are not loaded.
    known: VecDeque<DeliveryId>,
    /// Deliveries that are loaded and not started, and since when.
    pub(super) ready: VecDeque<(Instant, DueRow)>,
    /// Deliveries that are loaded and whose end is not recorded.
    pub(super) under_way: HashSet<DeliveryId>,
    /// The database may have more due deliveries than are known.
    pub(super) backlog: bool,
    /// When a delivery that failed is due again.
    retry_at: Option<Instant>,
    /// Until when nothing is loaded, because a row cannot be read.
    aside_until: Option<Instant>,
    /// How many are being loaded and were not found yet.
    loading: usize,
    pub(super) in_flight: u32,
    pub(super) circuit: Circuit,
    /// How many responses the lane got. A failed attempt halves it.
    pub(super) responses: u32,
    /// The average time of its responses.
    response_time: Duration,
    slow_until: Option<Instant>,
    pub(super) last_start: Option<Instant>,
    /// Whether it waits to be loaded, and for a place of its host.
    pub(super) is_queued: bool,
    pub(super) is_waiting: bool,
}

#[derive(Debug, Default)]
pub(super) struct Wanted {
    pub(super) known: Vec<DeliveryId>,
    /// How many more of its oldest deliveries.
    pub(super) more: usize,
}

impl Wanted {
    pub(super) fn number(&self) -> usize {
        self.known.len() + self.more
    }
}

/// What an attempt says about its receiver.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Health {
    Responds,
    /// It responded that it cannot work now. Others may have another answer from the same origin.
    Fails,
    /// The origin did not respond.
    Unreachable,
    /// It was not asked.
    Unknown,
}

impl Lane {
    pub(super) fn new(name: &str) -> Self {
        let parts = LaneParts::of(name);
        Self {
            origin: parts.origin.into(),
            host: parts.host.into(),
            owner: parts.owner.into(),
            ..Self::default()
        }
    }

    /// A message named a delivery.
    pub(super) fn add(&mut self, delivery: DeliveryId) {
        if self.circuit.is_open() || self.known.len() >= MAX_KNOWN {
            self.backlog = true;
        } else if !self.under_way.contains(&delivery) {
            self.known.push_back(delivery);
        }
    }

    /// A delivery may be due now, or again after a pause. Scans find those that wait for long.
    pub(super) fn retry(&mut self, decision: RetryDecision, now: Instant) {
        self.backlog |= decision == RetryDecision::NotSent;
        if let RetryDecision::Retry(pause) | RetryDecision::Postpone(pause) = decision
            && pause <= REMEMBERED
        {
            let at = now + pause + RECORDING;
            self.retry_at = Some(self.retry_at.map_or(at, |earlier| earlier.min(at)));
        }
    }

    pub(super) fn tick(&mut self, now: Instant) {
        self.backlog |= self.retry_at.take_if(|at| *at <= now).is_some();
    }

    /// Nothing waits for it or is under way.
    pub(super) fn is_idle(&self) -> bool {
        self.known.is_empty()
            && self.under_way.is_empty()
            && !self.backlog
            && self.loading == 0
            && self.retry_at.is_none()
    }

    /// Whether a request of it is under way, or the end of one is not recorded.
    pub(super) fn is_busy(&self) -> bool {
        self.under_way.len() > self.ready.len()
    }

    /// Whether it is answered, and was not slow lately. Any other lane must leave places of its host to others.
    pub(super) fn is_fast(&self, now: Instant) -> bool {
        self.responses > 0 && self.slow_until.is_none_or(|until| until <= now)
    }

    /// How many concurrent requests it may have, of a host with this limit.
    pub(super) fn limit(&self, limit: u32, now: Instant) -> u32 {
        if self.circuit.is_open() {
            u32::from(self.circuit.permits(now)).min(limit)
        } else {
            FIRST_REQUESTS.saturating_add(self.responses).min(limit)
        }
    }

    /// How many deliveries should be loaded now. None, until half of what it gets in advance is started.
    pub(super) fn wants(&self, limit: u32, now: Instant) -> usize {
        let is_aside = self.aside_until.is_some_and(|until| now < until);
        if is_aside || self.loading > 0 || self.known.is_empty() && !self.backlog {
            return 0;
        }
        let target = self.ahead(self.limit(limit, now));
        // While the circuit is open, a request in flight is the only one.
        let waiting_trial = if self.circuit.is_open() {
            self.in_flight as usize
        } else {
            0
        };
        let have = self.ready.len() + waiting_trial;
        if have * 2 > target { 0 } else { target - have }
    }

    /// Takes at most this many deliveries to load.
    pub(super) fn take_wanted(&mut self, number: usize) -> Wanted {
        // Those that are not known are often older.
        let known = if self.backlog {
            number.div_ceil(2)
        } else {
            number
        };
        // A delivery that was found in the database before its turn came may end while it is loaded a second time.
        let under_way = &self.under_way;
        let named = std::iter::from_fn(|| self.known.pop_front());
        let known: Vec<_> = named
            .filter(|id| !under_way.contains(id))
            .take(known)
            .collect();
        let more = if self.backlog {
            number - known.len()
        } else {
            0
        };
        // What becomes due from now on may be too late for this load.
        self.backlog &= more == 0;
        let wanted = Wanted { known, more };
        self.loading = wanted.number();
        wanted
    }

    fn ahead(&self, places: u32) -> usize {
        let (time, most) = LOADED_AHEAD;
        let response_time = self.response_time.max(Duration::from_micros(100));
        let in_time = u128::from(places) * time.as_micros() / response_time.as_micros();
        let number = u32::try_from(in_time).unwrap_or(most).min(most);
        if self.responses == 0 {
            places as usize
        } else {
            number.max(places) as usize
        }
    }

    /// A delivery was loaded, which may have been under way before.
    pub(super) fn push_ready(&mut self, row: DueRow) {
        if self.under_way.insert(row.delivery_id) {
            self.loading = self.loading.saturating_sub(1);
            self.ready.push_back((Instant::now(), row));
        }
    }

    /// The load ended. What a failed one asked for is in the database. Returns how many of those that it asked for it did
    /// not find.
    pub(super) fn load_ended(&mut self, failed: bool) -> usize {
        self.backlog |= failed;
        std::mem::take(&mut self.loading)
    }

    /// A row cannot be read, so nothing is loaded for a while.
    pub(super) fn set_aside(&mut self, now: Instant) {
        self.aside_until = Some(now + ASIDE);
    }

    /// A request ended. Returns whether the lane gets one request at a time from now on.
    pub(super) fn request_ended(
        &mut self,
        health: Health,
        duration: Duration,
        now: Instant,
    ) -> bool {
        self.in_flight = self.in_flight.saturating_sub(1);
        if duration >= SLOW {
            self.slow_until = Some(now + SLOW_FOR);
        }
        match health {
            Health::Responds => {
                self.circuit.succeeded();
                self.response_time = if self.responses == 0 {
                    duration
                } else {
                    (self.response_time * 7 + duration) / 8
                };
                self.responses = self.responses.saturating_add(1);
                false
            }
            Health::Fails | Health::Unreachable => {
                self.responses /= 2;
                self.circuit.failed(now)
            }
            Health::Unknown => false,
        }
    }

    /// Takes what is loaded and of no use: while the lane gets one request at a time, all but one.
    pub(super) fn take_surplus(&mut self) -> Vec<DueRow> {
        if !self.circuit.is_open() {
            return Vec::new();
        }
        let kept = self.ready.pop_front();
        let surplus = self.unload();
        self.ready.extend(kept);
        surplus
    }

    /// Takes all that is not started. What is due is paused or another worker's.
    pub(super) fn hold(&mut self) -> Vec<DueRow> {
        let unstarted = self.unload();
        self.backlog = false;
        self.retry_at = None;
        unstarted
    }

    /// Takes all that is not started, and forgets what is known: the database has it.
    fn unload(&mut self) -> Vec<DueRow> {
        self.backlog |= !self.known.is_empty() || !self.ready.is_empty();
        self.known.clear();
        self.ready.drain(..).map(|(_, row)| row).collect()
    }
}

/// While a circuit is open, a single request is made after each pause, until one succeeds.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Circuit {
    /// Failed attempts in a row.
    failures: u32,
    open: Option<Open>,
}

#[derive(Debug, Clone, Copy)]
struct Open {
    pause: Duration,
    next_trial: Instant,
}

impl Circuit {
    /// Whether there is one request at a time.
    pub(super) fn is_open(&self) -> bool {
        self.open.is_some()
    }

    /// Whether the last request failed.
    pub(super) fn has_failed(&self) -> bool {
        self.failures > 0
    }

    /// Whether it is open, and may still be tried.
    pub(super) fn matters(&self, now: Instant) -> bool {
        self.open
            .is_some_and(|open| now < open.next_trial + FORGOTTEN_AFTER)
    }

    /// Whether a request may be made now, if there is no other.
    pub(super) fn permits(&self, now: Instant) -> bool {
        self.open.is_none_or(|open| open.next_trial <= now)
    }

    /// There was a response.
    pub(super) fn succeeded(&mut self) {
        *self = Self::default();
    }

    /// There was none, or it said that the receiver cannot work now. Returns whether this opened the circuit.
    pub(super) fn failed(&mut self, now: Instant) -> bool {
        self.failures = self.failures.saturating_add(1);
        let (first, longest) = TRIAL_PAUSE;
        match &mut self.open {
            // Requests that were made before it opened say nothing new.
            Some(open) if now < open.next_trial => false,
            Some(open) => {
                open.pause = (open.pause * 2).min(longest);
                open.next_trial = now + open.pause;
                false
            }
            None if self.failures >= FAILURES => {
                self.open = Some(Open {
                    pause: first,
                    next_trial: now + first,
                });
                true
            }
            None => false,
        }
    }
}

#[cfg(test)]
mod tests;
