mod attempts;

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;
use tokio::time::MissedTickBehavior;
use tokio_util::sync::CancellationToken;
use values::DeliveryId;

use crate::deliveries::DueDelivery;
use crate::deliveries::worker::attempt::{AttemptResult, Lease, Sender};
use crate::deliveries::worker::blocked::BlockedHosts;
use crate::deliveries::worker::claims::{ClaimRequest, Claimed, Claims, Ended};
use crate::deliveries::worker::claims_store::ClaimedDelivery;
use crate::deliveries::worker::hosts::Host;
use crate::deliveries::worker::membership::{Member, UsedPlaces};
use crate::deliveries::worker::paused::PausedHosts;
use crate::deliveries::worker::recorder::Ends;
use crate::deliveries::worker::report;
use crate::deliveries::worker::results_store::ClaimEnd;

/// The largest number of messages that are taken before claims are made.
const BATCH: usize = 256;
/// How often hosts that do not respond are tried, and at most hosts are looked for that no message names.
const TICK: Duration = Duration::from_millis(250);
/// Nothing is started while more results than this wait to be recorded.
const MAX_UNRECORDED: usize = 4_096;
/// The largest number of hosts of which something is kept while nothing waits for them, and of all hosts.
const MAX_IDLE_HOSTS: usize = 10_000;
const MAX_HOSTS: usize = 100_000;

/// The messages that a worker receives.
pub(super) type Incoming = mpsc::Receiver<Vec<DueDelivery>>;

/// Decides which delivery is started next. It is the only one that knows what is under way, and it waits for nothing:
/// claims, attempts and results run beside it.
///
/// So a place of a host is free again as soon as its response has arrived, whatever the database does meanwhile.
pub(super) struct Dispatcher {
    pub(super) sender: Arc<Sender>,
    pub(super) claims: Claims,
    pub(super) ends: Ends,
    pub(super) incoming: Incoming,
    pub(super) member: watch::Receiver<Option<Member>>,
    pub(super) used: Arc<UsedPlaces>,
    /// The number of concurrent attempts, over all hosts.
    pub(super) max_in_flight: usize,
    /// How long a worker must run before it tries deliveries that may end workers.
    pub(super) suspects_after: Duration,
}

/// The state of a running dispatcher.
struct Dispatching {
    dispatcher: Dispatcher,
    hosts: HashMap<Arc<str>, Host>,
    /// Hosts for which something may have to be claimed.
    changed: HashSet<Arc<str>>,
    blocked: BlockedHosts,
    paused: PausedHosts,
    attempts: JoinSet<AttemptResult>,
    /// A delivery that is tried apart from others.
    suspect: Option<DeliveryId>,
    may_have_unknown_claims: bool,
    /// This worker, as the membership was last told.
    member: Option<Member>,
    started: Instant,
}

impl Dispatcher {
    /// Runs until `shutdown` is cancelled. Then it starts nothing more, and returns once every attempt has ended.
    pub(super) async fn run(self, shutdown: CancellationToken) {
        let dispatching = Dispatching {
            dispatcher: self,
            hosts: HashMap::new(),
            changed: HashSet::new(),
            blocked: BlockedHosts::default(),
            paused: PausedHosts::default(),
            attempts: JoinSet::new(),
            suspect: None,
            may_have_unknown_claims: false,
            member: None,
            started: Instant::now(),
        };
        dispatching.run(shutdown).await;
    }
}

impl Dispatching {
    async fn run(mut self, shutdown: CancellationToken) {
        let mut tick = tokio::time::interval(TICK);
        tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut received = Vec::new();
        loop {
            let d = &mut self.dispatcher;
            tokio::select! {
                Some(ended) = self.attempts.join_next() => self.finish(ended),
                ended = d.claims.next() => self.take_ended_claim(ended),
                number = d.incoming.recv_many(&mut received, BATCH) => {
                    if number == 0 {
                        break;
                    }
                    self.add(received.drain(..).flatten());
                }
                _ = tick.tick() => self.tick(),
                Ok(()) = d.member.changed() => self.adopt_places(),
                () = shutdown.cancelled() => break,
            }
            self.take_ended();
            self.claim();
        }
        self.stop().await;
    }

    /// Releases what is claimed and not started, and waits for the rest.
    async fn stop(mut self) {
        while self.dispatcher.claims.are_under_way() {
            let ended = self.dispatcher.claims.next().await;
            if let Ended::Claim(claimed) | Ended::SuspectClaim(claimed) = ended {
                self.release(claimed.rows);
            }
        }
        self.release_unstarted();
        self.hosts.clear();
        while let Some(ended) = self.attempts.join_next().await {
            self.finish(ended);
        }
    }

    /// This worker, unless others may take it for dead.
    fn member(&self) -> Option<Member> {
        self.member
            .filter(|member| Instant::now() < member.alive_until)
    }

    fn host(&mut self, name: &Arc<str>) -> &mut Host {
        self.hosts.entry(Arc::clone(name)).or_default()
    }

    fn add(&mut self, due: impl Iterator<Item = DueDelivery>) {
        for DueDelivery { id, host } in due {
            let name: Arc<str> = host.into();
            if self.may_keep(&name) {
                self.host(&name).add(id);
                self.changed.insert(name);
            }
        }
    }

    fn add_scanned(&mut self, hosts: impl IntoIterator<Item = Arc<str>>) {
        for name in hosts {
            if self.may_keep(&name) {
                self.host(&name).set_backlog();
                self.changed.insert(name);
            }
        }
    }

    /// Whether deliveries of a host may be kept. The scan finds those of others later.
    fn may_keep(&self, name: &Arc<str>) -> bool {
        let has_room = self.hosts.len() < MAX_HOSTS || self.hosts.contains_key(name);
        has_room && !self.paused.contains(name)
    }

    /// Releases what is claimed and not started of hosts that were paused, and goes on with those that were resumed.
    fn adopt_pauses(&mut self, paused: Vec<String>) {
        let changed = self.paused.replace(paused);
        for name in changed.paused {
            if let Some(host) = self.hosts.get_mut(&name) {
                let unstarted = host.hold();
                self.release(unstarted);
            }
        }
        self.add_scanned(changed.resumed);
    }

    fn tick(&mut self) {
        let now = Instant::now();
        let waiting = self
            .hosts
            .iter()
            .filter(|(_, host)| !host.is_forgettable(now));
        self.changed
            .extend(waiting.map(|(name, _)| Arc::clone(name)));
        let is_idle = self.changed.is_empty();
        if self.hosts.len() > MAX_IDLE_HOSTS {
            self.hosts.retain(|_, host| !host.is_forgettable(now));
        }
        let may_try = !self.may_have_unknown_claims
            && self.started.elapsed() >= self.dispatcher.suspects_after;
        if let Some(member) = self.member() {
            self.dispatcher.claims.scan(is_idle);
            if may_try && self.suspect.is_none() {
                self.dispatcher.claims.claim_suspect(member.id);
            }
        }
        self.adopt_places();
        self.start_ready();
        report::in_flight(self.attempts.len());
        let failing = self.hosts.values().filter(|host| host.is_failing(now));
        report::circuits_open(failing.count());
    }

    /// Tells the membership how many places are used at most, now that the new number is known. A worker that was taken
    /// for dead has lost its claims, and one whose database has started again may have some that it does not know.
    fn adopt_places(&mut self) {
        let member = *self.dispatcher.member.borrow_and_update();
        let id = |member: Option<Member>| member.map(|member| member.id);
        let starts = |member: Option<Member>| member.map(|member| member.server_starts);
        if id(member) != id(self.member) {
            self.release_unstarted();
        } else if starts(member) != starts(self.member) {
            self.may_have_unknown_claims = true;
            self.release_unstarted();
        }
        self.member = member;
        let busiest = self.hosts.values().map(Host::in_flight).max();
        let places = member.map(|member| member.places);
        let used = busiest.max(places).unwrap_or_default();
        self.dispatcher.used.set(used);
    }

    /// Claims deliveries for the hosts that can start them soon.
    fn claim(&mut self) {
        let Some(member) = self.member() else { return };
        if !self.dispatcher.claims.has_capacity()
            || self.dispatcher.ends.unrecorded() > MAX_UNRECORDED
        {
            return;
        }
        if self.may_have_unknown_claims {
            let knows_none = self.attempts.is_empty()
                && self.dispatcher.ends.unrecorded() == 0
                && !self.dispatcher.claims.are_under_way();
            if knows_none {
                self.dispatcher.claims.release_all(member.id);
            }
            return;
        }
        let now = Instant::now();
        let mut request = ClaimRequest::new(member.id);
        let changed: Vec<_> = self.changed.drain().collect();
        for name in changed {
            if request.is_full() {
                self.changed.insert(name);
                continue;
            }
            let Some(host) = self.hosts.get_mut(&name) else {
                continue;
            };
            let wanted = host.take_wanted(member.places, now);
            request.add(&name, wanted);
            if host.is_forgettable(now) {
                self.hosts.remove(&name);
            }
        }
        self.dispatcher.claims.start(request);
    }

    fn take_ended_claim(&mut self, ended: Ended) {
        match ended {
            Ended::Claim(claimed) | Ended::SuspectClaim(claimed) => self.take_claimed(claimed),
            Ended::Scan(found) => {
                if let Some(paused) = found.paused {
                    self.adopt_pauses(paused);
                }
                self.add_scanned(found.due.into_iter().map(Into::into));
            }
            Ended::Release(done) => self.may_have_unknown_claims &= !done,
        }
    }

    fn take_claimed(&mut self, claimed: Claimed) {
        if claimed.may_have_more {
            // The worker claims nothing until all that it knows of has ended, and releases the rest.
            self.may_have_unknown_claims = true;
            self.release_unstarted();
        }
        for (name, asked) in claimed.asked {
            // What a failed claim asked for is in the database.
            self.host(&name).claim_ended(asked, claimed.failed);
            self.changed.insert(name);
        }
        for name in claimed.without_more {
            self.host(&name).clear_backlog();
        }
        let mut ready = HashSet::new();
        for row in claimed.rows {
            if Some(row.worker_id) != self.member.map(|member| member.id) {
                self.release(vec![row]);
                continue;
            }
            if row.on_trial {
                tracing::warn!(delivery.id = %row.delivery_id, "trying a delivery on suspicion that it ends workers");
                self.suspect = Some(row.delivery_id);
            }
            let name: Arc<str> = row.host.as_str().into();
            self.host(&name).push_ready(row);
            ready.insert(name);
        }
        for name in ready {
            self.start(&name);
            let is_paused = self.paused.contains(&name);
            let host = self.host(&name);
            let mut unused = host.take_surplus();
            unused.extend(host.take_unstarted_trials());
            if is_paused {
                unused.extend(host.hold());
            }
            self.release(unused);
        }
    }

    fn release_unstarted(&mut self) {
        let unstarted: Vec<_> = self.hosts.values_mut().flat_map(Host::give_back).collect();
        self.release(unstarted);
    }

    fn release(&mut self, claims: Vec<ClaimedDelivery>) {
        for claimed in claims {
            if self.suspect == Some(claimed.delivery_id) {
                self.suspect = None;
            }
            let lease = Lease::of(&claimed);
            self.dispatcher.ends.send(ClaimEnd::Released(lease));
        }
    }
}
