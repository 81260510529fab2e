//! Starts attempts where a lane has a place, and takes what has ended.

use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::task::JoinError;

use super::Dispatcher;
use crate::deliveries::group_of;
use crate::deliveries::worker::attempt::{AttemptResult, Lease};
use crate::deliveries::worker::due_store::DueRow;
use crate::deliveries::worker::pass_on_panic;
use crate::deliveries::worker::places::Host;
use crate::deliveries::worker::schedule::RetryDecision;
use crate::tasks::Occasion;

/// A delivery that was loaded longer ago is loaded again before it is sent: it may have been cancelled since then.
const FRESH: Duration = Duration::from_secs(1);

impl Dispatcher {
    /// Starts what could not be started when it was loaded: lanes may be tried again.
    pub(super) fn start_everywhere(&mut self) {
        let hosts = self.hosts.values_mut();
        hosts.for_each(|host| host.refused.clear());
        let hosts = self.hosts.iter();
        let waiting = hosts.filter(|(_, host)| host.waiting.total() > 0);
        let waiting: Vec<_> = waiting.map(|(name, _)| Arc::clone(name)).collect();
        for host in waiting {
            self.start_at_host(&host, None);
        }
    }

    /// Lets a lane with loaded deliveries wait for a place of its host, in turn by owner.
    pub(super) fn enqueue_ready(&mut self, name: &Arc<str>) {
        if let Some(lane) = self.lanes.get_mut(name)
            && !lane.ready.is_empty()
            && !lane.is_waiting
        {
            let host = self.hosts.entry(Arc::clone(&lane.host)).or_default();
            lane.is_waiting = host.waiting.push(&lane.owner, Arc::clone(name));
        }
    }

    /// Starts what the host of a lane has places for, and first a lane of the same group that got no place.
    pub(super) fn start_at(&mut self, name: &Arc<str>) {
        if let Some(lane) = self.lanes.get(name) {
            let (host, owner) = (Arc::clone(&lane.host), Arc::clone(&lane.owner));
            self.start_at_host(&host, Some(&owner));
        }
    }

    fn start_at_host(&mut self, name: &Arc<str>, owner: Option<&Arc<str>>) {
        let limit = self.max_in_flight_per_host;
        let now = Instant::now();
        if !self.shards().contain(name) || self.paused.contains(&**name) {
            return;
        }
        if let Some(host) = self.hosts.get(name) {
            host.recall(limit, now, |lane| self.may_start(host, lane, now));
        }
        if let Some(host) = self.hosts.get_mut(name)
            && host.in_flight() < limit
            && let Some(lane) = owner.and_then(|owner| host.refused.pop(group_of(owner)))
            && self.lanes.get(&lane).is_some_and(|lane| !lane.is_waiting)
        {
            self.start_one(&lane, name, now);
        }
        while let Some(host) = self.hosts.get_mut(name)
            && host.in_flight() < limit
            && let Some(lane) = host.waiting.pop()
        {
            self.start_one(&lane, name, now);
        }
    }

    /// Whether a lane and its origin allow another request.
    fn may_start(&self, host: &Host, name: &Arc<str>, now: Instant) -> bool {
        self.lanes.get(name).is_some_and(|lane| {
            let is_first = !host.has_request_of(group_of(&lane.owner));
            let origin = self.origins.get(&lane.origin);
            lane.in_flight < lane.limit(self.max_in_flight_per_host, now)
                && origin.is_none_or(|origin| origin.permits(lane, is_first, now))
        })
    }

    /// Starts a delivery of a lane, if the lane, its origin and its owner may have another request. Otherwise the lane
    /// waits until a request of its group ends, or for the next tick.
    fn start_one(&mut self, name: &Arc<str>, host_name: &Arc<str>, now: Instant) {
        let limit = self.max_in_flight_per_host;
        let host = self.hosts.get(host_name);
        let may_start = host.is_some_and(|host| self.may_start(host, name, now));
        let (Some(lane), Some(host)) = (self.lanes.get_mut(name), self.hosts.get_mut(host_name))
        else {
            return;
        };
        lane.is_waiting = false;
        if !may_start {
            return;
        }
        if !host.has_place(&lane.owner, lane.is_fast(now), limit, now) {
            host.refused.push(&lane.owner, Arc::clone(name));
        } else if let Some((loaded, row)) = lane.ready.pop_front() {
            self.start(Box::new(row), loaded, now);
            self.enqueue_ready(name);
        }
    }

    /// Starts the attempt of a delivery that was `loaded` at a time.
    fn start(&mut self, row: Box<DueRow>, loaded: Instant, now: Instant) {
        let name: Arc<str> = row.lane.as_str().into();
        let Some(lane) = self.lanes.get_mut(&name) else {
            return;
        };
        let origin = self.origins.entry(Arc::clone(&lane.origin)).or_default();
        origin.started(&name, lane);
        lane.in_flight += 1;
        lane.last_start = Some(now);
        let host = self.hosts.entry(Arc::clone(&lane.host)).or_default();
        let recall = host.started(&lane.owner, row.delivery_id, lane.is_fast(now), now);
        let sender = Arc::clone(&self.sender);
        let worker = self.member.map(|member| member.id);
        let reload = (now - loaded >= FRESH).then(|| self.loads.reload(&row));
        let mut row = row;
        self.attempts.spawn(async move {
            if let Some(reload) = reload {
                match recall.run_until_cancelled(reload).await.flatten() {
                    // It replaces the one of before, which has the same texts.
                    Some(reloaded) => *row = reloaded,
                    None => return not_sent(&row, worker),
                }
            }
            let occasion = row.due_at.map_or(Occasion::Decision, Occasion::Due);
            sender.attempt(row, worker, occasion, recall).await
        });
    }

    /// Starts a delivery that may end this worker, beside the limits of its lane and its host: no receiver that is busy keeps
    /// those of others from being tried.
    pub(super) fn start_trial(&mut self, row: Box<DueRow>) {
        let id = row.delivery_id;
        let name: Arc<str> = row.lane.as_str().into();
        let now = Instant::now();
        let lane = self.lane(&name);
        let Some(lane) = lane.filter(|lane| !lane.under_way.contains(&id)) else {
            return self.refuse([*row]);
        };
        lane.under_way.insert(id);
        let owner = Arc::clone(&lane.owner);
        tracing::warn!(delivery.id = %id, "trying a delivery on suspicion that it ends workers");
        self.trial = Some((id, now));
        self.owners.add(&owner, 1, now);
        self.start(row, now, now);
    }

    pub(super) fn finish(&mut self, ended: Result<AttemptResult, JoinError>) {
        // A panic of a receiver's call is a result, so another one is the worker's own.
        let Some(end) = pass_on_panic(ended) else {
            return;
        };
        let now = Instant::now();
        let (name, delivery) = (Arc::clone(&end.lease.lane), end.lease.delivery);
        if let Some(lane) = self.lanes.get_mut(&name) {
            if lane.request_ended(end.health, end.duration, now) {
                metrics::counter!("webhook_circuits_opened_total").increment(1);
            }
            lane.retry(end.decision, now);
            let surplus = lane.take_surplus();
            let (host, owner) = (Arc::clone(&lane.host), Arc::clone(&lane.owner));
            let origin = self.origins.entry(Arc::clone(&lane.origin)).or_default();
            origin.ended(&name, end.health, now);
            self.hosts.entry(host).or_default().ended(&owner, delivery);
            self.make_room(&owner, 1);
            self.give_back(surplus);
        }
        self.record(end);
        self.enqueue_ready(&name);
        self.queue(&name);
        self.start_at(&name);
    }

    /// Forgets deliveries that are not started. The database has them.
    pub(super) fn give_back(&mut self, rows: impl IntoIterator<Item = DueRow>) {
        for row in rows {
            if let Some(lane) = self.lanes.get_mut(row.lane.as_str()) {
                // The end of one that is marked is recorded.
                if !row.is_marked {
                    lane.under_way.remove(&row.delivery_id);
                }
                let owner = Arc::clone(&lane.owner);
                self.make_room(&owner, 1);
            }
            self.give_back_marks([row]);
        }
    }

    /// Gives deliveries back that were loaded and are not wanted. What is under way is recorded at its end, and not before.
    pub(super) fn refuse(&mut self, rows: impl IntoIterator<Item = DueRow>) {
        for row in rows {
            let lane = self.lanes.get(row.lane.as_str());
            if lane.is_none_or(|lane| !lane.under_way.contains(&row.delivery_id)) {
                self.give_back_marks([row]);
            }
        }
    }

    /// Records that these deliveries, as far as they are marked, were not sent.
    pub(super) fn give_back_marks(&mut self, rows: impl IntoIterator<Item = DueRow>) {
        for row in rows.into_iter().filter(|row| row.is_marked) {
            self.record(not_sent(&row, None));
        }
    }

    pub(super) fn record(&mut self, end: AttemptResult) {
        self.unrecorded += 1;
        // Without the recorder the whole process stops.
        let _ = self.ends.send(end);
    }
}

fn not_sent(row: &DueRow, worker: Option<i32>) -> AttemptResult {
    let lease = Lease::of(row, worker);
    AttemptResult::without_request(lease, RetryDecision::NotSent, "not sent")
}
