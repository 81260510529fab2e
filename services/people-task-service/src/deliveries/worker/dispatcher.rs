use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

use database::{Connection, Database};
use messaging::Disposition;
use tokio::sync::mpsc;
use tokio::task::{JoinError, JoinSet};
use tokio::time::MissedTickBehavior;
use tokio_util::sync::CancellationToken;

use crate::deliveries::worker::attempt::{AttemptResult, LeasedDelivery, Sender};
use crate::deliveries::worker::message::DueDelivery;
use crate::deliveries::worker::report;
use crate::deliveries::worker::results_store::{self, RecordedResult};
use crate::deliveries::worker::store::{self, Claim, ClaimedDelivery, Cursors};

/// The largest number of messages, and of results, in a batch.
const BATCH_SIZE: usize = 512;
/// How often hosts are scanned that no message and no result names: their deliveries are parked, or wait
/// behind many others in the sweeps.
const SCAN_INTERVAL: Duration = Duration::from_millis(250);
/// How many hosts one scan covers. The next scan continues after them.
const SCANNED_HOSTS: i64 = 256;
/// How long a delivery may stay due, although its host was considered, before it is parked. Parking is a
/// write, and a fast receiver finishes a burst sooner.
const PARK_AFTER: Duration = Duration::from_secs(3);
/// How many hosts are kept while there is no capacity for their deliveries. Scans find the others.
const MAX_HOSTS: usize = 2_048;
const FIRST_PAUSE: Duration = Duration::from_millis(200);
const MAX_PAUSE: Duration = Duration::from_secs(2);

/// Limits of concurrent attempts.
#[derive(Debug, Clone, Copy)]
pub(super) struct DispatchLimits {
    /// The number of attempts in flight, over all hosts.
    pub(super) in_flight: usize,
    /// The number of attempts in flight to one host, over all workers.
    pub(super) per_host: u32,
    /// How long an attempt takes at most.
    pub(super) attempt: Duration,
    /// How long a lease lasts.
    pub(super) lease: Duration,
}

/// The one place that claims deliveries and records results. Each batch is one transaction over what has
/// arrived: it records results, then claims the next deliveries of their hosts and of the messages'
/// hosts. So a finished request lets the next one start at once, and batches grow with the load.
pub(super) struct Dispatcher {
    database: Database,
    sender: Arc<Sender>,
    limits: DispatchLimits,
    incoming: mpsc::Receiver<DueDelivery>,
    attempts: JoinSet<AttemptResult>,
    /// Received, but not handled yet. They survive an outage of the database.
    due: Vec<DueDelivery>,
    results: Vec<AttemptResult>,
    hosts: HashSet<String>,
    /// The next batch scans hosts.
    scan: bool,
    cursors: Cursors,
    /// No more deliveries are claimed.
    stopping: bool,
}

/// The result of one transaction.
struct Batch {
    recorded: Vec<RecordedResult>,
    claimed: Vec<ClaimedDelivery>,
    /// Where the next scan starts, if this batch scanned.
    cursors: Option<Cursors>,
    /// The number of deliveries whose attempts never finish.
    given_up: usize,
}

impl Dispatcher {
    pub(super) fn new(
        database: Database,
        sender: Sender,
        limits: DispatchLimits,
        incoming: mpsc::Receiver<DueDelivery>,
    ) -> Self {
        Self {
            database,
            sender: Arc::new(sender),
            limits,
            incoming,
            attempts: JoinSet::new(),
            due: Vec::new(),
            results: Vec::new(),
            hosts: HashSet::new(),
            scan: false,
            cursors: Cursors::default(),
            stopping: false,
        }
    }

    /// Runs until `shutdown` is cancelled. Then it claims no more deliveries, and returns once every attempt
    /// has finished and its result is recorded.
    pub(super) async fn run(mut self, shutdown: CancellationToken) {
        let mut tick = tokio::time::interval(SCAN_INTERVAL);
        tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut pause = FIRST_PAUSE;
        while !shutdown.is_cancelled() {
            tokio::select! {
                Some(ended) = self.attempts.join_next() => self.take_result(ended),
                received = self.incoming.recv_many(&mut self.due, BATCH_SIZE), if self.accepts_messages() => {
                    if received == 0 {
                        break;
                    }
                }
                _ = tick.tick() => self.scan = true,
                () = shutdown.cancelled() => break,
            }
            if self.process_batch().await {
                pause = FIRST_PAUSE;
            } else {
                tokio::time::sleep(pause.mul_f64(rand::random_range(0.5..1.0))).await;
                pause = (pause * 2).min(MAX_PAUSE);
            }
        }
        self.finish().await;
    }

    /// Waits for the attempts in flight, and records their results.
    async fn finish(mut self) {
        self.stopping = true;
        self.hosts.clear();
        self.scan = false;
        self.incoming.close();
        // Dropping the reply channels requeues the messages.
        self.due.clear();
        while let Ok(due) = self.incoming.try_recv() {
            drop(due);
        }
        loop {
            match self.attempts.join_next().await {
                Some(ended) => self.take_result(ended),
                None if self.results.is_empty() => return,
                None => tokio::time::sleep(FIRST_PAUSE).await,
            }
            self.gather();
            self.process_batch().await;
        }
    }

    fn accepts_messages(&self) -> bool {
        self.due.len() < BATCH_SIZE && self.attempts.len() < self.limits.in_flight
    }

    /// Takes everything that has already arrived.
    fn gather(&mut self) {
        while self.results.len() < BATCH_SIZE
            && let Some(ended) = self.attempts.try_join_next()
        {
            self.take_result(ended);
        }
        while self.accepts_messages()
            && let Ok(due) = self.incoming.try_recv()
        {
            self.due.push(due);
        }
    }

    fn take_result(&mut self, ended: Result<AttemptResult, JoinError>) {
        match ended {
            Ok(result) => {
                if !self.stopping {
                    self.hosts.insert(result.lease.host.clone());
                }
                self.results.push(result);
            }
            // Another attempt follows when its lease has ended.
            Err(error) => tracing::error!(%error, "an attempt was lost"),
        }
    }

    /// Processes one batch. Returns `false` if the database failed; the next batch then has everything again.
    async fn process_batch(&mut self) -> bool {
        self.gather();
        let now = Instant::now();
        self.results.retain(|result| result.lease.until > now);
        let claim = self.claim();
        let idle = self.results.is_empty() && !self.scan && claim.is_empty();
        if idle {
            return true;
        }
        let capacity = claim.capacity;
        let results = Arc::new(std::mem::take(&mut self.results));
        let shared = Arc::clone(&results);
        let cursors = self.scan.then(|| self.cursors.clone());
        let batch = self
            .database
            .transaction(move |connection| transact(connection, &shared, claim, cursors));
        let batch = batch.await;
        let results = Arc::into_inner(results).unwrap_or_default();
        match batch {
            Ok(batch) => {
                self.settle(batch, results, capacity, now);
                true
            }
            Err(error) => {
                tracing::warn!(error = ?error, "the database failed; the next batch tries again");
                self.results = results;
                false
            }
        }
    }

    /// The deliveries that this batch may claim. A quarter of all attempts is reserved for hosts that have none.
    fn claim(&self) -> Claim {
        let free = self.limits.in_flight.saturating_sub(self.attempts.len());
        let capacity = free.saturating_sub(self.limits.in_flight / 4);
        Claim {
            ids: self.due.iter().map(|due| due.delivery).collect(),
            hosts: self.hosts.iter().cloned().collect(),
            per_host: self.limits.per_host,
            capacity,
            reserved: free - capacity,
            lease: self.limits.lease,
        }
    }

    fn settle(
        &mut self,
        batch: Batch,
        results: Vec<AttemptResult>,
        capacity: usize,
        started: Instant,
    ) {
        for due in self.due.drain(..) {
            // The delivery is claimed, waits for its host, or is finished. The consumer may have stopped.
            let _ = due.reply.send(Disposition::Done);
        }
        let limited = batch.claimed.len() >= capacity;
        if !limited || self.hosts.len() > MAX_HOSTS {
            self.hosts.clear();
        }
        self.scan = false;
        report::given_up(batch.given_up);
        if let Some(cursors) = batch.cursors {
            self.cursors = cursors;
        }
        let states: HashMap<_, _> = batch.recorded.iter().map(|r| (r.delivery_id, r)).collect();
        for result in results {
            match states.get(&result.lease.delivery) {
                Some(state) if state.recorded => report::attempt_recorded(&result),
                Some(state) if state.leased => self.results.push(result),
                _ => report::attempt_lost(&result),
            }
        }
        for claimed in batch.claimed {
            self.start(claimed, started);
        }
        report::in_flight(self.attempts.len());
    }

    fn start(&mut self, claimed: ClaimedDelivery, batch_started: Instant) {
        let until = batch_started + self.limits.lease;
        if Instant::now() + self.limits.attempt > until {
            // The process was paused for so long that another worker could claim the delivery.
            tracing::warn!(delivery.id = %claimed.delivery_id, "a lease became too old to use");
            return;
        }
        let sender = Arc::clone(&self.sender);
        let delivery = LeasedDelivery { claimed, until };
        self.attempts
            .spawn(async move { sender.attempt(delivery).await });
    }
}

fn transact(
    connection: &mut Connection,
    results: &[AttemptResult],
    mut claim: Claim,
    mut cursors: Option<Cursors>,
) -> Result<Batch, database::Error> {
    let mut batch = Batch {
        recorded: Vec::new(),
        claimed: Vec::new(),
        cursors: None,
        given_up: 0,
    };
    if !results.is_empty() {
        batch.recorded = results_store::record_results(connection, results)?;
    }
    if let Some(cursors) = &mut cursors {
        batch.given_up = store::give_up(connection, SCANNED_HOSTS)?;
        let hosts = store::scan_due(connection, cursors, SCANNED_HOSTS)?;
        claim.hosts.extend(hosts);
    }
    batch.cursors = cursors;
    if !claim.is_empty() {
        batch.claimed = store::claim(connection, &claim)?;
        let limited = batch.claimed.len() >= claim.capacity;
        let overdue = if limited { Duration::ZERO } else { PARK_AFTER };
        let claimed: HashSet<_> = batch.claimed.iter().map(|c| c.delivery_id).collect();
        claim.ids.retain(|id| !claimed.contains(id));
        store::park_overdue(connection, &claim.ids, overdue)?;
    }
    Ok(batch)
}
