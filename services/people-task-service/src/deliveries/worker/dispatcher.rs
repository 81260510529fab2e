mod attempts;
mod handing_over;
mod loading;

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::sync::{mpsc, watch};
use tokio::task::{JoinError, JoinSet};
use tokio::time::MissedTickBehavior;
use tokio_util::sync::CancellationToken;
use values::DeliveryId;

use crate::deliveries::DueDelivery;
use crate::deliveries::worker::attempt::{AttemptResult, Lease};
use crate::deliveries::worker::call::Sender;
use crate::deliveries::worker::due_store::DueRow;
use crate::deliveries::worker::lane::Lane;
use crate::deliveries::worker::loads::{Ended, Loads};
use crate::deliveries::worker::ownership::{GivenUp, Member};
use crate::deliveries::worker::paused::PausedHosts;
use crate::deliveries::worker::places::{Host, Origin, Owners, WaitingLanes};
use crate::deliveries::worker::recorder::{Ends, Settled};
use crate::deliveries::worker::report;
use crate::deliveries::worker::results_store::End;
use crate::deliveries::worker::shards::Shards;

/// The largest number of messages that are taken before deliveries are loaded.
const BATCH: usize = 256;
/// How often lanes that do not respond are tried, and at most lanes are looked for that no message names.
const TICK: Duration = Duration::from_millis(250);
/// The largest number of lanes of which something is kept while nothing waits for them, and of all lanes.
const MAX_IDLE_LANES: usize = 10_000;
const MAX_LANES: usize = 100_000;
/// How many lanes of an owner whose share was used up are tried again at each tick.
const RETRIED_LANES: usize = 64;
/// How long a delivery is tried alone. A worker that still runs then was not ended by it.
const TRIAL: Duration = Duration::from_secs(1);

/// The messages that a worker receives.
pub(super) type Incoming = mpsc::Receiver<Vec<DueDelivery>>;

/// What a part of the worker returned. Its panic stops the process, and another worker takes the shards.
pub(super) fn pass_on_panic<T>(ended: Result<T, JoinError>) -> Option<T> {
    match ended.map_err(JoinError::try_into_panic) {
        Ok(result) => Some(result),
        Err(Ok(panic)) => std::panic::resume_unwind(panic),
        // Nothing cancels it.
        Err(Err(_)) => None,
    }
}

/// Decides which delivery is started next. It is the only one that knows what is under way, and it waits for nothing:
/// loads, attempts and results run beside it.
///
/// So a place of a host is free again as soon as its response has arrived, whatever the database does meanwhile.
pub(super) struct Dispatcher {
    pub(super) sender: Arc<Sender>,
    pub(super) loads: Loads,
    pub(super) ends: Ends,
    pub(super) settled: Settled,
    pub(super) incoming: Incoming,
    pub(super) member: watch::Receiver<Option<Member>>,
    pub(super) given_up: Arc<GivenUp>,
    /// The number of concurrent requests to a host.
    pub(super) max_in_flight_per_host: u32,
    /// The number of concurrent attempts, over all hosts.
    pub(super) max_in_flight: usize,
    /// How long a worker must run before it tries deliveries that may end workers.
    pub(super) suspects_after: Duration,
}

/// The state of a running dispatcher.
struct Dispatching {
    dispatcher: Dispatcher,
    lanes: HashMap<Arc<str>, Lane>,
    hosts: HashMap<Arc<str>, Host>,
    origins: HashMap<Arc<str>, Origin>,
    owners: Owners,
    /// Lanes for which something is to be loaded, by their owners, which take turns.
    to_load: WaitingLanes,
    /// Lanes whose owner has its share of what may be loaded.
    without_room: HashMap<Arc<str>, VecDeque<Arc<str>>>,
    paused: PausedHosts,
    attempts: JoinSet<AttemptResult>,
    /// How many ends are not recorded yet. It is limited by the number of deliveries under way.
    unrecorded: usize,
    /// A delivery that is tried apart from others.
    trial: Option<(DeliveryId, Instant)>,
    /// This worker, as the ownership was last told.
    member: Option<Member>,
    /// Shards that are given up, until the ownership has done so.
    given_up: Shards,
    /// Shards that are to be given up, and until when nothing is started for them.
    draining: Option<(Shards, Instant)>,
    /// When shards may be drained next.
    next_drain: Instant,
    started: Instant,
}

impl Dispatcher {
    /// Runs until `shutdown` is cancelled. Then it starts nothing more, and returns once every attempt has ended.
    pub(super) async fn run(self, shutdown: CancellationToken) {
        let dispatching = Dispatching {
            lanes: HashMap::new(),
            hosts: HashMap::new(),
            origins: HashMap::new(),
            owners: Owners::new(self.max_in_flight, MAX_LANES),
            to_load: WaitingLanes::new(),
            without_room: HashMap::new(),
            paused: PausedHosts::default(),
            attempts: JoinSet::new(),
            unrecorded: 0,
            trial: None,
            member: None,
            given_up: Shards::default(),
            draining: None,
            next_drain: Instant::now(),
            started: Instant::now(),
            dispatcher: self,
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
                ended = d.loads.next() => self.take_ended_load(ended),
                number = d.incoming.recv_many(&mut received, BATCH) => {
                    if number == 0 {
                        break;
                    }
                    self.add(received.drain(..).flatten());
                }
                Some(settled) = d.settled.recv() => self.settle(settled),
                _ = tick.tick() => self.tick(),
                Ok(()) = d.member.changed() => self.adopt_member(),
                () = shutdown.cancelled() => break,
            }
            self.take_ended();
            self.load();
        }
        self.stop().await;
    }

    /// Gives back what is not started, and waits for the rest. Other workers take a shard as soon as nothing of it is under
    /// way.
    async fn stop(mut self) {
        while self.dispatcher.loads.are_under_way() {
            match self.dispatcher.loads.next().await {
                Ended::Load(loaded) => self.give_back_marks(loaded.rows),
                Ended::Trial(trial) => self.give_back_marks(trial.row.map(|row| *row)),
                Ended::Scan(_) => {}
            }
        }
        let unstarted: Vec<_> = self.lanes.values_mut().flat_map(Lane::hold).collect();
        self.give_back(unstarted);
        self.member = self.member.map(|member| Member {
            surplus: u32::MAX,
            ..member
        });
        self.dispatcher.given_up.stop();
        self.give_up_shards();
        loop {
            tokio::select! {
                ended = self.attempts.join_next() => match ended {
                    Some(ended) => self.finish(ended),
                    None => break,
                },
                Some(settled) = self.dispatcher.settled.recv() => self.settle(settled),
            }
        }
    }

    /// The shards that this worker serves now. None, if others may take it for dead.
    fn shards(&self) -> Shards {
        let member = self.member;
        let alive = member.filter(|member| Instant::now() < member.alive_until);
        alive.map_or(Shards::default(), |member| {
            let draining = self
                .draining
                .map_or(Shards::default(), |(shards, _)| shards);
            member.shards.without(self.given_up).without(draining)
        })
    }

    fn add(&mut self, due: impl Iterator<Item = DueDelivery>) {
        for DueDelivery { id, lane } in due {
            let name: Arc<str> = lane.into();
            if let Some(lane) = self.lane(&name) {
                lane.add(id);
                self.queue(&name);
            }
        }
    }

    fn add_scanned(&mut self, lanes: impl IntoIterator<Item = Arc<str>>) {
        for name in lanes {
            if let Some(lane) = self.lane(&name) {
                lane.set_backlog();
                self.queue(&name);
            }
        }
    }

    /// A lane that this worker may serve, unless there are too many. The scan finds the deliveries of others later.
    fn lane(&mut self, name: &Arc<str>) -> Option<&mut Lane> {
        if !self.lanes.contains_key(name) {
            let lane = Lane::new(name);
            if self.owners.add_lane(&lane.owner) {
                self.lanes.insert(Arc::clone(name), lane);
            }
        }
        let shards = self.shards();
        let lane = self.lanes.get_mut(name)?;
        (shards.contain(&lane.host) && !self.paused.contains(&lane.host)).then_some(lane)
    }

    /// Lets a lane be loaded in turn, if it wants something.
    fn queue(&mut self, name: &Arc<str>) {
        let limit = self.dispatcher.max_in_flight_per_host;
        if let Some(lane) = self.lanes.get_mut(name)
            && !lane.is_queued
            && lane.wants(limit, Instant::now()) > 0
        {
            lane.is_queued = self.to_load.push(&lane.owner, Arc::clone(name));
        }
    }

    fn adopt_pauses(&mut self, found: Vec<String>) {
        let changed = self.paused.replace(found);
        if changed.paused.is_empty() && changed.resumed.is_empty() {
            return;
        }
        let mut unstarted = Vec::new();
        let mut resumed = Vec::new();
        for (name, lane) in &mut self.lanes {
            if changed.paused.contains(&lane.host) {
                unstarted.extend(lane.hold());
            } else if changed.resumed.contains(&lane.host) {
                resumed.push(Arc::clone(name));
            }
        }
        self.give_back(unstarted);
        self.add_scanned(resumed);
    }

    fn tick(&mut self) {
        let now = Instant::now();
        let names: Vec<_> = self.lanes.keys().map(Arc::clone).collect();
        let mut is_idle = true;
        for name in names {
            if let Some(lane) = self.lanes.get_mut(&name) {
                lane.tick(now);
                is_idle &= lane.is_idle();
                self.enqueue_ready(&name);
                self.queue(&name);
            }
        }
        let owners: Vec<_> = self.without_room.keys().map(Arc::clone).collect();
        for owner in owners {
            self.retry_without_room(&owner, RETRIED_LANES);
        }
        self.forget_idle();
        let shards = self.shards();
        if shards != Shards::default() {
            self.dispatcher.loads.scan(is_idle);
            self.begin_trial(shards, now);
        }
        self.give_up_shards();
        self.start_everywhere();
        let failing = self.lanes.values().filter(|lane| lane.is_failing(now));
        report::under_way(self.attempts.len(), failing.count());
    }

    fn forget_idle(&mut self) {
        if self.lanes.len() <= MAX_IDLE_LANES {
            return;
        }
        let owners = &mut self.owners;
        self.lanes.retain(|_, lane| {
            let is_kept = !lane.is_idle() || lane.is_queued || lane.is_waiting;
            if !is_kept {
                owners.remove_lane(&lane.owner);
            }
            is_kept
        });
        let known: HashSet<_> = self.lanes.values().map(|lane| &lane.host).collect();
        self.hosts.retain(|name, _| known.contains(name));
        let known: HashSet<_> = self.lanes.values().map(|lane| &lane.origin).collect();
        self.origins.retain(|name, _| known.contains(name));
    }

    fn begin_trial(&mut self, shards: Shards, now: Instant) {
        let is_over = self.trial.is_none_or(|(_, since)| now - since >= TRIAL);
        if is_over && self.started.elapsed() >= self.dispatcher.suspects_after {
            let under_way = self.lanes.values().flat_map(|lane| &lane.under_way);
            self.dispatcher
                .loads
                .begin_trial(shards, under_way.copied());
        }
    }

    /// Forgets deliveries that are not started. The database has them.
    fn give_back(&mut self, rows: impl IntoIterator<Item = DueRow>) {
        let mut marked = Vec::new();
        for row in rows {
            if let Some(lane) = self.lanes.get_mut(row.lane.as_str()) {
                // The end of one that is marked is recorded.
                if !row.is_marked {
                    lane.under_way.remove(&row.delivery_id);
                }
                let owner = Arc::clone(&lane.owner);
                self.make_room(&owner, 1);
            }
            marked.push(row);
        }
        self.give_back_marks(marked);
    }

    /// Records that these deliveries, as far as they are marked, were not sent.
    fn give_back_marks(&mut self, rows: impl IntoIterator<Item = DueRow>) {
        for row in rows.into_iter().filter(|row| row.is_marked) {
            self.record(End::NotSent(Lease::of(&row)));
        }
    }

    fn record(&mut self, end: End) {
        self.unrecorded += 1;
        // Without the recorder the whole process stops.
        let _ = self.dispatcher.ends.send(end);
    }
}
