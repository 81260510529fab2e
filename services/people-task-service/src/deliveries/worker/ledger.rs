use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

use database::Database;
use diesel::PgConnection;
use messaging::Disposition;
use tokio::sync::{mpsc, oneshot};
use tokio::task::{JoinError, JoinSet};
use tokio::time::MissedTickBehavior;
use tokio_util::sync::CancellationToken;
use values::DeliveryId;

use crate::deliveries::worker::attempt::{Finished, Held, Sending};
use crate::deliveries::worker::report;
use crate::deliveries::worker::results::{self, Written};
use crate::deliveries::worker::store::{self, Claim, Claimed, Cursors};

/// Wake-ups, and results, that one turn takes at the most.
const BATCH: usize = 512;
/// How often origins are looked at that no wake-up and no result speaks of: their deliveries were parked,
/// or wait behind a million others in the sweeps.
const TICK: Duration = Duration::from_millis(250);
/// Origins that one tick looks at; the next one goes on behind them.
const LOOKED_AT: i64 = 256;
/// A delivery that is due for so long although its origin was looked at is parked. A fast receiver works
/// off a burst in less, and each parking is a write.
const PARKED_AFTER: Duration = Duration::from_secs(3);
/// Origins that are remembered while there is no room for their deliveries; more are found parked.
const MAX_ORIGINS: usize = 2_048;
const FIRST_PAUSE: Duration = Duration::from_millis(200);
const LONGEST_PAUSE: Duration = Duration::from_secs(2);

/// How much the ledger lets happen at once.
#[derive(Debug, Clone, Copy)]
pub(super) struct Bounds {
    /// Attempts under way, all origins together.
    pub(super) in_flight: usize,
    /// Attempts under way to one origin, over all workers.
    pub(super) per_origin: u32,
    /// The longest time that an attempt takes.
    pub(super) attempt: Duration,
    /// How long a claim lasts.
    pub(super) lease: Duration,
}

/// A delivery that may be due, and whoever waits until it was looked at.
#[derive(Debug)]
pub(super) struct WakeUp {
    pub(super) delivery: DeliveryId,
    pub(super) answer: oneshot::Sender<Disposition>,
}

/// The one place that claims deliveries and writes results. Each turn takes whatever has gathered and is
/// one transaction: results are written, then the origins that they belong to, and those of the
/// wake-ups, get their next deliveries claimed. So a request that ends makes room for the next at once,
/// and batches grow with the load.
pub(super) struct Ledger {
    database: Database,
    sending: Arc<Sending>,
    bounds: Bounds,
    incoming: mpsc::Receiver<WakeUp>,
    attempts: JoinSet<Finished>,
    /// Taken in, but not yet done with: they outlast a database that is away.
    wake_ups: Vec<WakeUp>,
    results: Vec<Finished>,
    origins: HashSet<String>,
    /// It is time to look around for origins.
    looks_around: bool,
    cursors: Cursors,
    /// Nothing is claimed any more.
    stopping: bool,
}

/// What one turn's transaction did.
struct Turn {
    written: Vec<Written>,
    claimed: Vec<Claimed>,
    /// Where the next look around begins, if this was one.
    cursors: Option<Cursors>,
    /// Deliveries whose attempts never end.
    given_up: usize,
}

impl Ledger {
    pub(super) fn new(
        database: Database,
        sending: Sending,
        bounds: Bounds,
        incoming: mpsc::Receiver<WakeUp>,
    ) -> Self {
        Self {
            database,
            sending: Arc::new(sending),
            bounds,
            incoming,
            attempts: JoinSet::new(),
            wake_ups: Vec::new(),
            results: Vec::new(),
            origins: HashSet::new(),
            looks_around: false,
            cursors: Cursors::default(),
            stopping: false,
        }
    }

    /// Works until `shutdown` is cancelled; then claims nothing more, and returns when every attempt has
    /// ended and its result is written.
    pub(super) async fn run(mut self, shutdown: CancellationToken) {
        let mut tick = tokio::time::interval(TICK);
        tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut pause = FIRST_PAUSE;
        while !shutdown.is_cancelled() {
            tokio::select! {
                Some(ended) = self.attempts.join_next() => self.take_result(ended),
                received = self.incoming.recv_many(&mut self.wake_ups, BATCH), if self.takes_wake_ups() => {
                    if received == 0 {
                        break;
                    }
                }
                _ = tick.tick() => self.looks_around = true,
                () = shutdown.cancelled() => break,
            }
            if self.turn().await {
                pause = FIRST_PAUSE;
            } else {
                tokio::time::sleep(pause.mul_f64(rand::random_range(0.5..1.0))).await;
                pause = (pause * 2).min(LONGEST_PAUSE);
            }
        }
        self.finish().await;
    }

    /// Ends what was begun.
    async fn finish(mut self) {
        self.stopping = true;
        self.origins.clear();
        self.looks_around = false;
        self.incoming.close();
        // Whoever waits for an answer learns that there will be none.
        self.wake_ups.clear();
        while let Ok(wake_up) = self.incoming.try_recv() {
            drop(wake_up);
        }
        loop {
            match self.attempts.join_next().await {
                Some(ended) => self.take_result(ended),
                None if self.results.is_empty() => return,
                None => tokio::time::sleep(FIRST_PAUSE).await,
            }
            self.gather();
            self.turn().await;
        }
    }

    fn takes_wake_ups(&self) -> bool {
        self.wake_ups.len() < BATCH && self.attempts.len() < self.bounds.in_flight
    }

    /// Takes what else is there already.
    fn gather(&mut self) {
        while self.results.len() < BATCH
            && let Some(ended) = self.attempts.try_join_next()
        {
            self.take_result(ended);
        }
        while self.takes_wake_ups()
            && let Ok(wake_up) = self.incoming.try_recv()
        {
            self.wake_ups.push(wake_up);
        }
    }

    fn take_result(&mut self, ended: Result<Finished, JoinError>) {
        match ended {
            Ok(finished) => {
                if !self.stopping {
                    self.origins.insert(finished.held.origin.clone());
                }
                self.results.push(finished);
            }
            // Its lease runs out, and it comes again.
            Err(error) => tracing::error!(%error, "an attempt was lost"),
        }
    }

    /// One transaction over what has gathered; `false` when the database did not do it, and then
    /// everything stays for the next turn.
    async fn turn(&mut self) -> bool {
        self.gather();
        let now = Instant::now();
        self.results.retain(|result| result.held.until > now);
        let claim = self.claim();
        let idle = self.results.is_empty() && !self.looks_around && claim.is_empty();
        if idle {
            return true;
        }
        let room = claim.room;
        let results = Arc::new(std::mem::take(&mut self.results));
        let shared = Arc::clone(&results);
        let cursors = self.looks_around.then(|| self.cursors.clone());
        let turn = self
            .database
            .transaction(move |connection| transact(connection, &shared, claim, cursors));
        let turn = turn.await;
        let results = Arc::into_inner(results).unwrap_or_default();
        match turn {
            Ok(turn) => {
                self.settle(turn, results, room, now);
                true
            }
            Err(error) => {
                tracing::warn!(error = ?error, "deliveries can be neither claimed nor written just now");
                self.results = results;
                false
            }
        }
    }

    /// What this turn may claim. The last quarter of all attempts is for origins that have none.
    fn claim(&self) -> Claim {
        let free = self.bounds.in_flight.saturating_sub(self.attempts.len());
        let room = free.saturating_sub(self.bounds.in_flight / 4);
        Claim {
            ids: self.wake_ups.iter().map(|w| w.delivery).collect(),
            origins: self.origins.iter().cloned().collect(),
            per_origin: self.bounds.per_origin,
            room,
            reserve: free - room,
            lease: self.bounds.lease,
        }
    }

    fn settle(&mut self, turn: Turn, results: Vec<Finished>, room: usize, began: Instant) {
        for wake_up in self.wake_ups.drain(..) {
            // The row is ours now, or waits for its origin, or needs nothing. The consumer may be gone.
            let _ = wake_up.answer.send(Disposition::Done);
        }
        let limited = turn.claimed.len() >= room;
        if !limited || self.origins.len() > MAX_ORIGINS {
            self.origins.clear();
        }
        self.looks_around = false;
        report::given_up(turn.given_up);
        if let Some(cursors) = turn.cursors {
            self.cursors = cursors;
        }
        let states: HashMap<_, _> = turn.written.iter().map(|w| (w.delivery_id, w)).collect();
        for result in results {
            match states.get(&result.held.delivery) {
                Some(state) if state.written => report::written(&result),
                Some(state) if state.ours => self.results.push(result),
                _ => report::lost(&result),
            }
        }
        for claimed in turn.claimed {
            self.start(claimed, began);
        }
        report::in_flight(self.attempts.len());
    }

    fn start(&mut self, claimed: Claimed, began: Instant) {
        let until = began + self.bounds.lease;
        if Instant::now() + self.bounds.attempt > until {
            // The process stood still for so long that another worker could take over meanwhile.
            tracing::warn!(delivery.id = %claimed.delivery_id, "a claim grew too old to be used");
            return;
        }
        let sending = Arc::clone(&self.sending);
        let held = Held { claimed, until };
        self.attempts
            .spawn(async move { sending.attempt(held).await });
    }
}

fn transact(
    connection: &mut PgConnection,
    finished: &[Finished],
    mut claim: Claim,
    mut cursors: Option<Cursors>,
) -> Result<Turn, database::Error> {
    let mut turn = Turn {
        written: Vec::new(),
        claimed: Vec::new(),
        cursors: None,
        given_up: 0,
    };
    if !finished.is_empty() {
        turn.written = results::write(connection, finished)?;
    }
    if let Some(cursors) = &mut cursors {
        turn.given_up = store::give_up(connection, LOOKED_AT)?;
        let origins = store::look_around(connection, cursors, LOOKED_AT)?;
        claim.origins.extend(origins);
    }
    turn.cursors = cursors;
    if !claim.is_empty() {
        turn.claimed = store::claim(connection, &claim)?;
        let limited = turn.claimed.len() >= claim.room;
        let overdue = if limited {
            Duration::ZERO
        } else {
            PARKED_AFTER
        };
        let claimed: HashSet<_> = turn.claimed.iter().map(|c| c.delivery_id).collect();
        claim.ids.retain(|id| !claimed.contains(id));
        store::park(connection, &claim.ids, overdue)?;
    }
    Ok(turn)
}
