//! What lanes share: the concurrent requests of a host and of an origin, and what one worker can have under way. Owners are of
//! [groups](../../../../../docs/decisions/workers-own-hosts.md), and an account without one is a group of its own.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

use fairness::{Recent, Remainder};
use tokio_util::sync::CancellationToken;
use values::DeliveryId;

use crate::deliveries::group_of;
use crate::deliveries::worker::lane::{Circuit, Health, Lane, SLOW};
use crate::deliveries::worker::waiting_lanes::{LanesOfGroups, WaitingLanes, group_key};

/// How long another owner counts after its last request to a host.
const SHARED: Duration = Duration::from_mins(10);
/// How long another owner counts after its last delivery.
const RECENT: Duration = Duration::from_secs(10);
/// The largest number of concurrent first requests to an origin that does not respond, and of groups that try again.
const MAX_TRIALS: usize = 4;

/// What an owner may always have under way and in memory, until an eighth of the worker's capacity is left: so an owner of a
/// group that has its share is not kept waiting by the others of the group.
const ALWAYS: (u64, u64) = (4, 16);

/// The concurrent requests to a host, and the lanes that wait for a place.
///
/// A group has at most three quarters of the places, and more only on loan. While other groups wait, slow requests are ended:
/// those on loan, and one by one those of the group with the most until each group that waits has a place.
pub(super) struct Host {
    /// How many requests groups have.
    groups: HashMap<Arc<str>, u32>,
    /// In the order in which they began.
    requests: Vec<HostRequest>,
    /// Which owners had requests lately.
    recent: Recent<Arc<str>>,
    pub(super) waiting: WaitingLanes,
    /// Lanes for which their groups left no place when it was their turn, since the last tick. What a request of the group
    /// gives up is theirs before the others'.
    pub(super) refused: LanesOfGroups,
}

struct HostRequest {
    delivery: DeliveryId,
    owner: Arc<str>,
    /// Whether its lane was known to be fast.
    is_fast: bool,
    since: Instant,
    recall: CancellationToken,
}

impl HostRequest {
    fn group(&self) -> &str {
        group_of(&self.owner)
    }

    fn is_slow(&self, now: Instant) -> bool {
        now - self.since >= SLOW
    }
}

impl Default for Host {
    fn default() -> Self {
        Self {
            groups: HashMap::new(),
            requests: Vec::new(),
            recent: Recent::new(SHARED),
            waiting: WaitingLanes::new(),
            refused: LanesOfGroups::default(),
        }
    }
}

impl Host {
    pub(super) fn in_flight(&self) -> u32 {
        u32::try_from(self.requests.len()).unwrap_or(u32::MAX)
    }

    /// Whether an owner may have another request, of a host with this limit. What is not known to be fast gets no place on
    /// loan, and leaves half of what others leave it, if there are other owners. But the first request of an owner waits for
    /// none of its group while the host has a place, unless many owners of the group have one that is not known to be fast.
    pub(super) fn has_place(
        &self,
        owner: &Arc<str>,
        is_fast: bool,
        limit: u32,
        now: Instant,
    ) -> bool {
        let group = group_of(owner);
        let own = self.groups.get(group).copied().unwrap_or_default();
        let left = limit.saturating_sub(self.in_flight() - own);
        let allowed = if is_fast {
            left.min(self.part_of_fast(group, limit))
        } else if self.recent.has_other_than(owner, now.into()) {
            let fast = self.fast_of_others(group);
            (left + fast.saturating_sub(limit / 2)).div_ceil(2)
        } else {
            left.min(without_loans(limit))
        };
        own < allowed || self.is_newcomer(owner, limit)
    }

    /// What a fast group may have: all places or, while others wait, an equal part of them. Otherwise turns would give a place
    /// that it keeps for longer than they need to it as often as to them.
    fn part_of_fast(&self, group: &str, limit: u32) -> u32 {
        let waiting = self.waiting.groups().filter(|waiting| *waiting != group);
        let mut groups: HashSet<_> = waiting.take(limit as usize).collect();
        if groups.is_empty() {
            return limit;
        }
        groups.extend(self.groups.keys().map(|group| &**group));
        groups.insert(group);
        let groups = u32::try_from(groups.len()).unwrap_or(u32::MAX);
        (limit / groups).max(1)
    }

    /// How many fast requests other groups have. They count as at most half of the places: otherwise they would get every
    /// place that becomes free.
    fn fast_of_others(&self, group: &str) -> u32 {
        let requests = self.requests.iter();
        let fast = requests.filter(|request| request.is_fast && request.group() != group);
        u32::try_from(fast.count()).unwrap_or(u32::MAX)
    }

    /// Whether an owner has no request, and only a few owners of its group have one that is not known to be fast.
    fn is_newcomer(&self, owner: &Arc<str>, limit: u32) -> bool {
        let group = group_of(owner);
        let requests = self.requests.iter();
        let of_group = requests.filter(|request| !request.is_fast && request.group() == group);
        let owners: HashSet<_> = of_group.map(|request| &request.owner).collect();
        owners.len() < limit.div_ceil(4) as usize
            && self.requests.iter().all(|request| request.owner != *owner)
    }

    pub(super) fn has_request_of(&self, group: &str) -> bool {
        self.groups.contains_key(group)
    }

    /// Counts a request. Returns what is cancelled when it must end.
    pub(super) fn started(
        &mut self,
        owner: &Arc<str>,
        delivery: DeliveryId,
        is_fast: bool,
        now: Instant,
    ) -> CancellationToken {
        self.recent.record(Arc::clone(owner), now.into());
        let group = group_key(&self.groups, owner);
        *self.groups.entry(group).or_default() += 1;
        let recall = CancellationToken::new();
        self.requests.push(HostRequest {
            delivery,
            owner: Arc::clone(owner),
            is_fast,
            since: now,
            recall: recall.clone(),
        });
        recall
    }

    pub(super) fn ended(&mut self, owner: &Arc<str>, delivery: DeliveryId) {
        let mut requests = self.requests.iter();
        if let Some(ended) = requests.position(|request| request.delivery == delivery) {
            self.requests.remove(ended);
        }
        let group = group_of(owner);
        if let Some(own) = self.groups.get_mut(group) {
            *own = own.saturating_sub(1);
            if *own == 0 {
                self.groups.remove(group);
            }
        }
    }

    pub(super) fn end_slow(&self, now: Instant) {
        let requests = self.requests.iter();
        let slow = requests.filter(|request| request.is_slow(now));
        slow.for_each(|request| request.recall.cancel());
    }

    /// Ends slow requests, if all places of this host with this limit are taken and other groups wait. For a group that has no
    /// request and a lane that may start, one request of the group with the most ends at a time, unless half of the places
    /// have fast requests, of which one ends soon.
    pub(super) fn recall(&self, limit: u32, now: Instant, may_start: impl Fn(&Arc<str>) -> bool) {
        let is_slow = |request: &&HostRequest| request.is_slow(now);
        if self.in_flight() < limit || !self.requests.first().as_ref().is_some_and(is_slow) {
            return;
        }
        for (group, own) in &self.groups {
            let on_loan = own.saturating_sub(without_loans(limit)) as usize;
            if on_loan > 0 && self.waiting.has_other_than(group) {
                let own = self.requests.iter().rev();
                let newest = own
                    .filter(|request| request.group() == &**group)
                    .take(on_loan);
                newest
                    .filter(is_slow)
                    .for_each(|request| request.recall.cancel());
            }
        }
        let is_ending = |request: &HostRequest| request.recall.is_cancelled();
        let ends_soon = |request: &&HostRequest| request.is_fast && !is_slow(request);
        let frees_soon = self.requests.iter().filter(ends_soon).count() >= limit as usize / 2;
        if !frees_soon
            && !self.requests.iter().any(is_ending)
            && self.waiting.has_startable(&self.groups, may_start)
        {
            let of_group = |request: &HostRequest| self.groups.get(request.group()).copied();
            // The last one of several that are equal is returned, so the oldest.
            let slow = self.requests.iter().rev().filter(is_slow);
            let most = slow.max_by_key(|request| of_group(request));
            if let Some(most) = most.filter(|request| of_group(request) > Some(1)) {
                most.recall.cancel();
            }
        }
    }
}

/// How many of a host's places a group may have without a loan.
fn without_loans(limit: u32) -> u32 {
    limit - limit / 4
}

/// Whether an origin responds, whatever it answers.
#[derive(Default)]
pub(super) struct Origin {
    pub(super) in_flight: u32,
    pub(super) circuit: Circuit,
    /// The groups whose lanes have failed and try now whether the origin responds again, and the lane of each.
    trying: HashMap<Arc<str>, Arc<str>>,
}

impl Origin {
    /// Whether a lane may have another request. While the origin does not respond, a lane has one at a time: at once if its
    /// last request was successful, or if it has made none and few are under way or none of its group, so that no failures of
    /// others keep it from trying. Of the lanes that have failed, one of each group tries after each pause, whatever requests
    /// the others have.
    pub(super) fn permits(&self, lane: &Lane, is_first_of_group: bool, now: Instant) -> bool {
        if !self.circuit.is_open() {
            return true;
        }
        if lane.circuit.has_failed() {
            return lane.in_flight == 0
                && self.trying.len() < MAX_TRIALS
                && !self.trying.contains_key(group_of(&lane.owner))
                && self.circuit.permits(now);
        }
        let is_new = is_first_of_group || (self.in_flight as usize) < MAX_TRIALS;
        lane.in_flight == 0 && (lane.responses > 0 || is_new)
    }

    pub(super) fn started(&mut self, name: &Arc<str>, lane: &Lane) {
        self.in_flight += 1;
        if self.circuit.is_open() && lane.circuit.has_failed() {
            let group = group_key(&self.trying, &lane.owner);
            self.trying.entry(group).or_insert_with(|| Arc::clone(name));
        }
    }

    pub(super) fn ended(&mut self, name: &Arc<str>, health: Health, now: Instant) {
        self.in_flight = self.in_flight.saturating_sub(1);
        self.trying.retain(|_, trying| trying != name);
        match health {
            Health::Responds | Health::Fails => self.circuit.succeeded(),
            Health::Unreachable => drop(self.circuit.failed(now)),
            Health::Unknown => {}
        }
    }
}

/// What owners may have loaded and under way in this worker.
pub(super) struct Owners {
    /// What all together may have, and have.
    most: Held,
    all: Held,
    /// What owners and groups have. An owner without a group is its own.
    held: HashMap<Arc<str>, Held>,
    /// Which groups had deliveries lately.
    recent: Recent<Arc<str>>,
}

#[derive(Clone, Copy, Default)]
struct Held {
    deliveries: u64,
    lanes: u64,
}

impl Owners {
    pub(super) fn new(capacity: usize, max_lanes: usize) -> Self {
        Self {
            most: Held {
                deliveries: capacity as u64,
                lanes: max_lanes as u64,
            },
            all: Held::default(),
            held: HashMap::new(),
            recent: Recent::new(RECENT),
        }
    }

    fn held(&self, name: &str) -> Held {
        self.held.get(name).copied().unwrap_or_default()
    }

    /// How many more deliveries of an owner may be loaded, of this number. A group that is alone leaves a quarter of the
    /// capacity for others; one that is not may have a third as much as remains free.
    pub(super) fn room(&self, owner: &Arc<str>, number: usize, now: Instant) -> usize {
        let (capacity, total) = (self.most.deliveries, self.all.deliveries);
        let group = group_key(&self.held, owner);
        let room = if self.recent.has_other_than(&group, now.into()) {
            Remainder(capacity).room(self.held(&group).deliveries, total)
        } else {
            (capacity - capacity / 4).saturating_sub(total)
        };
        let (few, _) = ALWAYS;
        let few = few.saturating_sub(self.held(owner).deliveries);
        let left = (capacity - capacity / 8).saturating_sub(total);
        let room = room.max(few.min(left));
        usize::try_from(room).unwrap_or(usize::MAX).min(number)
    }

    pub(super) fn add(&mut self, owner: &Arc<str>, number: usize, now: Instant) {
        let group = group_key(&self.held, owner);
        self.recent.record(group, now.into());
        self.change(owner, |held| held.deliveries += number as u64);
    }

    pub(super) fn remove(&mut self, owner: &Arc<str>, number: usize) {
        self.change(owner, |held| {
            held.deliveries = held.deliveries.saturating_sub(number as u64);
        });
    }

    /// Adds a lane of an owner, unless the group has its share of them. The scan finds the deliveries later.
    pub(super) fn add_lane(&mut self, owner: &Arc<str>) -> bool {
        let (most, total) = (self.most.lanes, self.all.lanes);
        let own = self.held(group_of(owner)).lanes;
        let (_, few) = ALWAYS;
        let has_few = self.held(owner).lanes < few;
        let allowed = Remainder(most).room(own, total) > 0 || has_few && total < most - most / 8;
        if allowed {
            self.change(owner, |held| held.lanes += 1);
        }
        allowed
    }

    pub(super) fn remove_lane(&mut self, owner: &Arc<str>) {
        self.change(owner, |held| held.lanes = held.lanes.saturating_sub(1));
    }

    fn change(&mut self, owner: &Arc<str>, change: impl Fn(&mut Held)) {
        change(&mut self.all);
        let group = group_key(&self.held, owner);
        let member = (group != *owner).then(|| Arc::clone(owner));
        for name in member.into_iter().chain([group]) {
            let held = self.held.entry(Arc::clone(&name)).or_default();
            change(held);
            if held.deliveries == 0 && held.lanes == 0 {
                self.held.remove(&name);
            }
        }
    }
}

#[cfg(test)]
mod tests;
