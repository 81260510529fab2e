//! Records the ends of deliveries in batches, beside sending.

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use database::{Connection, Database, Error};
use tokio::sync::mpsc;
use values::DeliveryId;

use crate::deliveries::worker::report;
use crate::deliveries::worker::results_store::{self as store, End};

/// The largest number of ends in a batch.
const BATCH: usize = 512;
/// How long a batch is gathered. No caller waits for a result, and what a crash leaves unrecorded is sent again.
const GATHERING: Duration = Duration::from_millis(20);
/// The pause after a failure and before locked rows are tried again.
const PAUSE: Duration = Duration::from_millis(200);

/// Where the ends of deliveries are sent, and how many of them are not recorded yet.
#[derive(Debug, Clone)]
pub(super) struct Ends {
    sender: mpsc::UnboundedSender<End>,
    unrecorded: Arc<AtomicUsize>,
}

impl Ends {
    /// Adds an end. Their number is limited by that of the deliveries under way.
    pub(super) fn send(&self, end: End) {
        self.unrecorded.fetch_add(1, Ordering::AcqRel);
        // Without the recorder the whole process stops.
        let _ = self.sender.send(end);
    }

    /// How many are not recorded yet.
    pub(super) fn unrecorded(&self) -> usize {
        self.unrecorded.load(Ordering::Acquire)
    }
}

/// The lanes and deliveries whose ends are recorded.
pub(super) type Settled = mpsc::UnboundedReceiver<Vec<(Arc<str>, DeliveryId)>>;

/// Records what is sent to its [`Ends`].
pub(super) struct Recorder {
    database: Database,
    incoming: mpsc::UnboundedReceiver<End>,
    unrecorded: Arc<AtomicUsize>,
    settled: mpsc::UnboundedSender<Vec<(Arc<str>, DeliveryId)>>,
}

/// What a statement did with a batch.
#[derive(Default)]
struct Recorded {
    recorded: HashSet<DeliveryId>,
    /// Deliveries that were not recorded although they are as they were loaded: their rows were locked.
    held: HashSet<DeliveryId>,
}

impl Recorder {
    /// A recorder, where to send the ends of deliveries, and which of them are recorded.
    pub(super) fn new(database: Database) -> (Self, Ends, Settled) {
        let (sender, incoming) = mpsc::unbounded_channel();
        let (settled, recorded) = mpsc::unbounded_channel();
        let unrecorded = Arc::<AtomicUsize>::default();
        let recorder = Self {
            database,
            incoming,
            unrecorded: Arc::clone(&unrecorded),
            settled,
        };
        (recorder, Ends { sender, unrecorded }, recorded)
    }

    /// Runs until every sender is gone and everything is recorded.
    pub(super) async fn run(mut self) {
        let mut batch = Vec::new();
        loop {
            if batch.is_empty() && self.incoming.recv_many(&mut batch, BATCH).await == 0 {
                return;
            }
            tokio::time::sleep(GATHERING).await;
            while batch.len() < BATCH
                && let Ok(end) = self.incoming.try_recv()
            {
                batch.push(end);
            }
            let before = batch.len();
            batch = self.record(batch).await;
            self.unrecorded
                .fetch_sub(before - batch.len(), Ordering::AcqRel);
            if !batch.is_empty() {
                tokio::time::sleep(PAUSE).await;
            }
        }
    }

    /// Records a batch, and returns what has to be recorded again. If the database refuses a batch, each end is recorded
    /// alone, so that one of them does not hold up the others.
    async fn record(&self, batch: Vec<End>) -> Vec<End> {
        let (batch, error) = match self.record_together(batch).await {
            Ok(locked) => return locked,
            Err(failed) => failed,
        };
        error.warn("results could not be recorded; they are recorded later");
        if !matches!(error, Error::Statement(_)) {
            return batch;
        }
        let (mut left, mut refused) = (Vec::new(), Vec::new());
        let number = batch.len();
        for end in batch {
            match self.record_together(vec![end]).await {
                Ok(locked) => left.extend(locked),
                Err((mut ends, error)) => refused.extend(ends.pop().map(|end| (end, error))),
            }
        }
        // If others were accepted, the reason is in the end itself.
        let is_own_fault = refused.len() < number;
        left.extend(refused.into_iter().map(|(end, error)| {
            if !is_own_fault {
                return end;
            }
            report::refused(&end, &error);
            end.without_texts()
        }));
        left
    }

    /// Reports what was recorded, and returns what met a locked row.
    fn settle(&self, batch: Vec<End>, Recorded { recorded, held }: &Recorded) -> Vec<End> {
        let (mut locked, mut settled) = (Vec::new(), Vec::new());
        for end in batch {
            let lease = end.lease();
            let (delivery, lane) = (lease.delivery, Arc::clone(&lease.lane));
            match &end {
                _ if !recorded.contains(&delivery) && held.contains(&delivery) => {
                    locked.push(end);
                    continue;
                }
                End::Attempted(result) if recorded.contains(&delivery) => {
                    report::attempt_recorded(result);
                }
                End::Attempted(result) => report::attempt_lost(result),
                End::NotSent(_) => {}
            }
            settled.push((lane, delivery));
        }
        // The dispatcher may have stopped.
        let _ = self.settled.send(settled);
        locked
    }

    /// Records a batch, and returns the ends whose rows were locked, or the whole batch.
    async fn record_together(&self, batch: Vec<End>) -> Result<Vec<End>, (Vec<End>, Error)> {
        let shared = Arc::new(batch);
        let ends = Arc::clone(&shared);
        let record = move |connection: &mut Connection| record(connection, &ends);
        let recorded = self.database.run(record).await;
        let batch = Arc::into_inner(shared).unwrap_or_default();
        match recorded {
            Ok(recorded) => Ok(self.settle(batch, &recorded)),
            Err(error) => Err((batch, error)),
        }
    }
}

fn record(connection: &mut Connection, ends: &[End]) -> Result<Recorded, Error> {
    let recorded = store::record_ends(connection, ends)?;
    let others = ends
        .iter()
        .filter(|end| !recorded.contains(&end.lease().delivery));
    let others: Vec<_> = others.collect();
    if others.is_empty() {
        let held = HashSet::new();
        return Ok(Recorded { recorded, held });
    }
    let leases: Vec<_> = others.iter().map(|end| end.lease()).collect();
    // The others are recorded, whatever happens to these.
    let held = store::load_held(connection, &leases).unwrap_or_else(|error| {
        tracing::warn!(%error, "results that were not recorded could not be looked up");
        leases.iter().map(|lease| lease.delivery).collect()
    });
    Ok(Recorded { recorded, held })
}
