mod attempts;
mod loading;
mod membership;

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::Arc;
use std::time::{Duration, Instant};

use database::Database;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;
use tokio::time::{MissedTickBehavior, sleep};
use tokio_util::sync::CancellationToken;
use values::DeliveryId;

use crate::deliveries::DueDelivery;
use crate::deliveries::worker::attempt::AttemptResult;
use crate::deliveries::worker::call::Sender;
use crate::deliveries::worker::lane::Lane;
use crate::deliveries::worker::loads::{Ended, Loads};
use crate::deliveries::worker::ownership::{Member, Ownership, Wishes};
use crate::deliveries::worker::places::{Host, Origin, Owners};
use crate::deliveries::worker::recorder::Settled;
use crate::deliveries::worker::shards::Shards;
use crate::deliveries::worker::waiting_lanes::WaitingLanes;
use crate::settings::WebhookWorkerSettings;

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
/// How long a worker that stops waits for slow receivers: no longer than the others would if it were killed.
const STOPPING: Duration = Duration::from_secs(2);

pub(super) type Incoming = mpsc::Receiver<Vec<DueDelivery>>;

/// Decides which delivery is started next. It is the only one that knows what is under way, and it waits for nothing:
/// loads, attempts and results run beside it.
///
/// So a place of a host is free again as soon as its response has arrived, whatever the database does meanwhile.
pub(super) struct Dispatcher {
    sender: Arc<Sender>,
    loads: Loads,
    ends: mpsc::UnboundedSender<AttemptResult>,
    settled: mpsc::UnboundedReceiver<Settled>,
    incoming: Incoming,
    membership: watch::Receiver<Option<Member>>,
    wishes: watch::Sender<Wishes>,
    max_in_flight_per_host: u32,
    /// How long a worker must run before it tries deliveries that may end workers.
    suspects_after: Duration,
    lanes: HashMap<Arc<str>, Lane>,
    hosts: HashMap<Arc<str>, Host>,
    origins: HashMap<Arc<str>, Origin>,
    owners: Owners,
    /// Lanes for which something is to be loaded, by their owners, which take turns.
    to_load: WaitingLanes,
    /// Lanes of a load that failed. Each is loaded alone, to find the one that has a row that cannot be read.
    suspects: VecDeque<Arc<str>>,
    /// Lanes whose owner has its share of what may be loaded.
    without_room: HashMap<Arc<str>, VecDeque<Arc<str>>>,
    /// The hosts to which deliveries are paused, as the last scan found them. No load takes deliveries to them.
    paused: HashSet<String>,
    attempts: JoinSet<AttemptResult>,
    /// How many ends are not recorded yet. It is limited by the number of deliveries under way.
    unrecorded: usize,
    /// A delivery that is tried apart from others, until its end is recorded.
    trial: Option<(DeliveryId, Instant)>,
    member: Option<Member>,
    /// Shards that are to be given up, and until when nothing is started for them.
    draining: Option<(Shards, Instant)>,
    next_drain: Instant,
    started: Instant,
}

impl Dispatcher {
    /// A dispatcher, and the ownership that must run beside it.
    pub(super) fn new(
        settings: &WebhookWorkerSettings,
        beats: Database,
        database: &Database,
        sender: Arc<Sender>,
        incoming: Incoming,
        (ends, settled): (
            mpsc::UnboundedSender<AttemptResult>,
            mpsc::UnboundedReceiver<Settled>,
        ),
    ) -> (Self, Ownership) {
        let (ownership, membership, wishes) = Ownership::new(beats, settings.silence);
        let dispatcher = Self {
            sender,
            loads: Loads::new(database.clone()),
            ends,
            settled,
            incoming,
            membership,
            wishes,
            max_in_flight_per_host: settings.max_in_flight_per_host,
            suspects_after: settings.suspects_after,
            lanes: HashMap::new(),
            hosts: HashMap::new(),
            origins: HashMap::new(),
            owners: Owners::new(settings.max_in_flight, MAX_LANES),
            to_load: WaitingLanes::new(),
            suspects: VecDeque::new(),
            without_room: HashMap::new(),
            paused: HashSet::new(),
            attempts: JoinSet::new(),
            unrecorded: 0,
            trial: None,
            member: None,
            draining: None,
            next_drain: Instant::now(),
            started: Instant::now(),
        };
        (dispatcher, ownership)
    }

    /// Runs until `shutdown` is cancelled. Then it starts nothing more, and returns once every attempt has ended.
    pub(super) async fn run(mut self, shutdown: CancellationToken) {
        let mut tick = tokio::time::interval(TICK);
        tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut received = Vec::new();
        loop {
            tokio::select! {
                Some(ended) = self.attempts.join_next() => self.finish(ended),
                Some(ended) = self.loads.next() => self.take_ended_load(ended),
                number = self.incoming.recv_many(&mut received, BATCH) => {
                    if number == 0 {
                        break;
                    }
                    self.add(received.drain(..).flatten());
                }
                Some(settled) = self.settled.recv() => self.settle(settled),
                _ = tick.tick() => self.tick(),
                Ok(()) = self.membership.changed() => self.adopt_member(),
                () = shutdown.cancelled() => break,
            }
            while let Some(ended) = self.attempts.try_join_next() {
                self.finish(ended);
            }
            self.load();
        }
        self.stop().await;
    }

    /// Gives back what is not started, and waits for the rest, but not for receivers that are slow. Other workers take a shard as
    /// soon as nothing of it is under way, whatever is still being loaded.
    async fn stop(mut self) {
        // A delivery whose trial it does not end would be blamed for its end.
        self.suspects_after = Duration::MAX;
        let unstarted: Vec<_> = self.lanes.values_mut().flat_map(Lane::hold).collect();
        self.give_back(unstarted);
        if let Some(member) = &mut self.member {
            member.surplus = u32::MAX;
        }
        self.wishes.send_modify(|wishes| wishes.is_stopping = true);
        self.next_drain = Instant::now() + STOPPING;
        self.give_up_shards();
        let end_slow = sleep(STOPPING);
        tokio::pin!(end_slow);
        while !self.attempts.is_empty() || self.loads.are_under_way() {
            tokio::select! {
                Some(ended) = self.attempts.join_next() => self.finish(ended),
                Some(ended) = self.loads.next() => match ended {
                    Ended::Load(loaded) => self.refuse(loaded.rows),
                    Ended::Trial(trial) => self.refuse(trial.row.map(|row| *row)),
                    Ended::Scan(_) => {}
                },
                Some(settled) = self.settled.recv() => self.settle(settled),
                () = &mut end_slow, if !end_slow.is_elapsed() => self.end_slow(Shards::ALL),
            }
        }
    }

    /// Ends slow requests to hosts of these shards, so that other workers can take them.
    fn end_slow(&self, shards: Shards) {
        let now = Instant::now();
        let hosts = self.hosts.iter();
        let own = hosts.filter(|(name, _)| shards.contain(name));
        own.for_each(|(_, host)| host.end_slow(now));
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
                lane.backlog = true;
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
        (shards.contain(&lane.host) && !self.paused.contains(&*lane.host)).then_some(lane)
    }

    /// Lets a lane be loaded in turn, if it wants something.
    fn queue(&mut self, name: &Arc<str>) {
        let limit = self.max_in_flight_per_host;
        if let Some(lane) = self.lanes.get_mut(name)
            && !lane.is_queued
            && lane.wants(limit, Instant::now()) > 0
        {
            lane.is_queued = self.to_load.push(&lane.owner, Arc::clone(name));
        }
    }

    /// Gives back what was loaded for paused hosts, and looks for what waits for those that were resumed.
    fn adopt_pauses(&mut self, found: Vec<String>) {
        let found = HashSet::from_iter(found);
        if found == self.paused {
            return;
        }
        self.paused = found;
        let lanes = self.lanes.values_mut();
        let held = lanes.filter(|lane| self.paused.contains(&*lane.host));
        let unstarted: Vec<_> = held.flat_map(Lane::hold).collect();
        self.give_back(unstarted);
        self.loads.scan_all();
    }

    fn tick(&mut self) {
        let now = Instant::now();
        let names: Vec<_> = self.lanes.keys().map(Arc::clone).collect();
        let (mut is_idle, mut without_place) = (true, Vec::new());
        for name in names {
            if let Some(lane) = self.lanes.get_mut(&name) {
                lane.tick(now);
                is_idle &= lane.is_idle();
                if !lane.ready.is_empty() && !lane.is_waiting {
                    without_place.push((lane.last_start, Arc::clone(&name)));
                }
                self.queue(&name);
            }
        }
        // They could not start when it was their turn. Those that started longest ago are the first.
        without_place.sort_unstable();
        for (_, name) in &without_place {
            self.enqueue_ready(name);
        }
        let owners: Vec<_> = self.without_room.keys().map(Arc::clone).collect();
        for owner in owners {
            self.retry_without_room(&owner, RETRIED_LANES);
        }
        self.forget_idle();
        let shards = self.shards();
        if shards != Shards::default() {
            self.loads.scan(is_idle);
            self.begin_trial(shards, now);
        }
        self.give_up_shards();
        self.start_everywhere();
        let failing = self.lanes.values().filter(|lane| lane.circuit.matters(now));
        let number = |number| u32::try_from(number).unwrap_or(u32::MAX);
        metrics::gauge!("webhook_attempts_in_flight").set(number(self.attempts.len()));
        metrics::gauge!("webhook_circuits_open").set(number(failing.count()));
    }

    fn forget_idle(&mut self) {
        if self.lanes.len() <= MAX_IDLE_LANES {
            return;
        }
        let is_idle = |lane: &Lane| lane.is_idle() && !lane.is_queued && !lane.is_waiting;
        let idle = self.lanes.iter().filter(|(_, lane)| is_idle(lane));
        let mut idle: Vec<_> = idle
            .map(|(name, lane)| (lane.last_start, Arc::clone(name)))
            .collect();
        if idle.len() <= MAX_IDLE_LANES {
            return;
        }
        idle.sort_unstable();
        idle.truncate(idle.len() - MAX_IDLE_LANES);
        for (_, name) in idle {
            if let Some(lane) = self.lanes.remove(&name) {
                self.owners.remove_lane(&lane.owner);
            }
        }
        let known: HashSet<_> = self.lanes.values().map(|lane| &lane.host).collect();
        self.hosts.retain(|name, _| known.contains(name));
        let known: HashSet<_> = self.lanes.values().map(|lane| &lane.origin).collect();
        self.origins.retain(|name, _| known.contains(name));
    }

    fn begin_trial(&mut self, shards: Shards, now: Instant) {
        let is_over = self.trial.is_none_or(|(_, since)| now - since >= TRIAL);
        if is_over && self.started.elapsed() >= self.suspects_after {
            let under_way = self.lanes.values().flat_map(|lane| &lane.under_way);
            self.loads.begin_trial(shards, under_way.copied());
        }
    }
}
