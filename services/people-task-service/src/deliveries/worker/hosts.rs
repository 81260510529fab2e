//! What a worker knows of a host: which deliveries wait for it, and how fast it responds.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use values::DeliveryId;

use crate::deliveries::worker::circuit::Circuit;
use crate::deliveries::worker::claims_store::ClaimedDelivery;

/// How many concurrent requests a host gets at first. Each response adds one, up to the limit, so a host that does not
/// respond never gets more.
const FIRST_REQUESTS: u32 = 4;
/// A worker claims as many deliveries of a host in advance as it responds to in this time, and no more than this many.
const CLAIMED_AHEAD: (Duration, u32) = (Duration::from_millis(50), 256);
/// Identifiers of due deliveries that are kept for a host. The others are found in the database.
const MAX_KNOWN: usize = 20_000;

/// A host of webhooks.
#[derive(Default)]
pub(super) struct Host {
    /// Deliveries that messages named, and that are not claimed.
    known: VecDeque<DeliveryId>,
    /// Deliveries that this worker has claimed and not started.
    ready: VecDeque<ClaimedDelivery>,
    /// The database may have more due deliveries than are known.
    backlog: bool,
    /// How many are being claimed.
    claiming: usize,
    in_flight: u32,
    circuit: Circuit,
    /// How many responses the host gave. A failed attempt halves it.
    responses: u32,
    /// The average time of its responses.
    response_time: Duration,
}

/// The deliveries of a host to claim next.
#[derive(Debug, Default)]
pub(super) struct WantedClaims {
    pub(super) known: Vec<DeliveryId>,
    /// How many more of its oldest deliveries.
    pub(super) more: usize,
}

impl WantedClaims {
    pub(super) fn number(&self) -> usize {
        self.known.len() + self.more
    }
}

/// What an attempt says about its host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Health {
    /// The host responded.
    Responds,
    /// It did not, or said that it cannot work now.
    Fails,
    /// It was not asked.
    Unknown,
}

impl Host {
    /// A message named a delivery.
    pub(super) fn add(&mut self, delivery: DeliveryId) {
        if self.circuit.is_open() || self.known.len() >= MAX_KNOWN {
            self.backlog = true;
        } else {
            self.known.push_back(delivery);
        }
    }

    /// The database may have due deliveries that are not known.
    pub(super) fn set_backlog(&mut self) {
        self.backlog = true;
    }

    /// Nothing is known of the host that would be missed.
    pub(super) fn is_forgettable(&self, now: Instant) -> bool {
        self.known.is_empty()
            && self.ready.is_empty()
            && !self.backlog
            && self.claiming == 0
            && self.in_flight == 0
            && !self.circuit.matters(now)
    }

    /// Whether its circuit is open and it may still be tried.
    pub(super) fn is_failing(&self, now: Instant) -> bool {
        self.circuit.matters(now)
    }

    pub(super) fn in_flight(&self) -> u32 {
        self.in_flight
    }

    pub(super) fn has_ready(&self) -> bool {
        !self.ready.is_empty()
    }

    /// How many concurrent requests it may have, of a worker with this many places.
    fn places(&self, places: u32, now: Instant) -> u32 {
        if self.circuit.is_open() {
            u32::from(self.circuit.permits(now)).min(places)
        } else {
            FIRST_REQUESTS.saturating_add(self.responses).min(places)
        }
    }

    /// Takes what should be claimed for it now. Nothing, until half of what it gets in advance is started.
    pub(super) fn take_wanted(&mut self, places: u32, now: Instant) -> WantedClaims {
        let mut wanted = WantedClaims::default();
        if self.known.is_empty() && !self.backlog {
            return wanted;
        }
        let target = self.ahead(self.places(places, now));
        let have = self.ready.len() + self.claiming + self.waiting_trial();
        if have * 2 > target {
            return wanted;
        }
        let number = target - have;
        // Those that are not known are often older.
        let known = if self.backlog {
            number.div_ceil(2)
        } else {
            number
        };
        wanted.known = self.known.drain(..known.min(self.known.len())).collect();
        if self.backlog {
            wanted.more = number - wanted.known.len();
        }
        self.claiming += wanted.number();
        wanted
    }

    /// While the circuit is open, a request in flight is the only one.
    fn waiting_trial(&self) -> usize {
        if self.circuit.is_open() {
            self.in_flight as usize
        } else {
            0
        }
    }

    fn ahead(&self, places: u32) -> usize {
        let (time, most) = CLAIMED_AHEAD;
        let response_time = self.response_time.max(Duration::from_micros(100));
        let in_time = u128::from(places) * time.as_micros() / response_time.as_micros();
        let number = u32::try_from(in_time).unwrap_or(most).min(most);
        if self.responses == 0 {
            places as usize
        } else {
            number.max(places) as usize
        }
    }

    /// A claim ended that asked for this many deliveries.
    pub(super) fn claim_ended(&mut self, asked: usize, backlog: bool) {
        self.claiming = self.claiming.saturating_sub(asked);
        self.backlog |= backlog;
    }

    /// A delivery was claimed. One on trial comes first.
    pub(super) fn push_ready(&mut self, claimed: ClaimedDelivery) {
        if claimed.on_trial {
            self.ready.push_front(claimed);
        } else {
            self.ready.push_back(claimed);
        }
    }

    /// Takes the claims on trial that were not started. While one waits, its worker's end would count against it.
    pub(super) fn take_unstarted_trials(&mut self) -> Vec<ClaimedDelivery> {
        let (trials, ready) = self.ready.drain(..).partition(|claimed| claimed.on_trial);
        self.ready = ready;
        VecDeque::into(trials)
    }

    /// The last claim found fewer than it asked for.
    pub(super) fn clear_backlog(&mut self) {
        self.backlog = false;
    }

    /// Takes the next delivery to start, if the host has a place for it.
    pub(super) fn start_next(&mut self, places: u32, now: Instant) -> Option<ClaimedDelivery> {
        if self.in_flight >= self.places(places, now) {
            return None;
        }
        let next = self.ready.pop_front()?;
        self.in_flight += 1;
        Some(next)
    }

    /// A request ended. Returns whether the host gets one request at a time from now on.
    pub(super) fn request_ended(
        &mut self,
        health: Health,
        duration: Duration,
        now: Instant,
    ) -> bool {
        self.in_flight = self.in_flight.saturating_sub(1);
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
            Health::Fails => {
                self.responses /= 2;
                self.circuit.failed(now)
            }
            Health::Unknown => false,
        }
    }

    /// Takes the claims that are of no use: while the host gets one request at a time, all but one.
    pub(super) fn take_surplus(&mut self) -> Vec<ClaimedDelivery> {
        if !self.circuit.is_open() {
            return Vec::new();
        }
        let kept = self.ready.pop_front();
        let surplus = self.give_back();
        self.ready.extend(kept);
        surplus
    }

    /// Takes all claims that are not started, and forgets that there are due deliveries, because the host is paused.
    pub(super) fn hold(&mut self) -> Vec<ClaimedDelivery> {
        let unstarted = self.give_back();
        self.clear_backlog();
        unstarted
    }

    /// Takes all claims that are not started, and forgets what is known: the database has it.
    pub(super) fn give_back(&mut self) -> Vec<ClaimedDelivery> {
        self.backlog |= !self.known.is_empty() || !self.ready.is_empty();
        self.known.clear();
        self.ready.drain(..).collect()
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use values::DeliveryId;

    use super::{Health, Host};

    const PLACES: u32 = 16;

    fn host_with(known: usize) -> Host {
        let mut host = Host::default();
        for _ in 0..known {
            host.add(DeliveryId::generate());
        }
        host
    }

    /// Lets a host respond a number of times.
    fn respond(host: &mut Host, times: usize, after: Duration) {
        for _ in 0..times {
            host.in_flight += 1;
            host.request_ended(Health::Responds, after, Instant::now());
        }
    }

    #[test]
    fn a_host_begins_with_four_requests_and_gets_more_as_it_responds() {
        let now = Instant::now();
        let mut host = host_with(0);
        assert_eq!(host.places(PLACES, now), 4);
        respond(&mut host, 3, Duration::from_millis(50));
        assert_eq!(host.places(PLACES, now), 7);
        respond(&mut host, 100, Duration::from_millis(50));
        assert_eq!(host.places(PLACES, now), 16);
        assert_eq!(host.places(2, now), 2);
    }

    #[test]
    fn a_fast_host_gets_more_claims_in_advance_than_a_slow_one() {
        for (response_time, expected) in [(1, 256), (10, 80), (50, 16), (5_000, 16)] {
            let mut host = host_with(1_000);
            respond(&mut host, 100, Duration::from_millis(response_time));
            let wanted = host.take_wanted(PLACES, Instant::now());
            assert_eq!(wanted.known.len(), expected, "{response_time} ms");
            // They are on their way.
            assert_eq!(host.take_wanted(PLACES, Instant::now()).number(), 0);
        }
    }

    #[test]
    fn a_host_that_fails_gets_one_request_after_a_pause_and_its_deliveries_are_given_back() {
        let mut now = Instant::now();
        let mut host = host_with(10);
        for _ in 0..5 {
            host.in_flight += 1;
            host.request_ended(Health::Fails, Duration::ZERO, now);
            host.take_surplus();
        }
        assert_eq!(host.places(PLACES, now), 0);
        assert_eq!(host.take_wanted(PLACES, now).number(), 0);
        assert!(!host.is_forgettable(now));
        now += Duration::from_millis(250);
        let wanted = host.take_wanted(PLACES, now);
        assert_eq!((wanted.known.len(), wanted.more), (0, 1));
        assert_eq!(host.take_wanted(PLACES, now).number(), 0);
        host.claim_ended(1, false);
        host.in_flight += 1;
        host.request_ended(Health::Responds, Duration::ZERO, now);
        assert!(host.places(PLACES, now) > 1);
    }

    #[test]
    fn what_is_asked_for_is_asked_for_again_after_a_failed_claim() {
        let now = Instant::now();
        let mut host = host_with(3);
        assert_eq!(host.take_wanted(PLACES, now).number(), 3);
        host.claim_ended(3, true);
        let wanted = host.take_wanted(PLACES, now);
        assert_eq!((wanted.known.len(), wanted.more), (0, 4));
        host.claim_ended(4, false);
        host.clear_backlog();
        assert!(host.is_forgettable(now));
    }
}
