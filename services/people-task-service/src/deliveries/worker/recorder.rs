//! Records the ends of claims in batches, beside sending.

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use database::{Connection, Database, Error};
use tokio::sync::mpsc;
use values::DeliveryId;

use crate::deliveries::worker::report;
use crate::deliveries::worker::results_store::{self as store, ClaimEnd};

/// The largest number of ends in a batch.
const BATCH: usize = 512;
/// How long a batch is gathered. No caller waits for a result.
const GATHERING: Duration = Duration::from_millis(5);
/// The pause after a failure and before locked rows are tried again.
const PAUSE: Duration = Duration::from_millis(200);

/// Where the ends of claims are sent, and how many of them are not recorded yet.
#[derive(Debug, Clone)]
pub(super) struct Ends {
    sender: mpsc::UnboundedSender<ClaimEnd>,
    unrecorded: Arc<AtomicUsize>,
}

impl Ends {
    /// Adds the end of a claim. Its number is limited by that of the claims.
    pub(super) fn send(&self, end: ClaimEnd) {
        self.unrecorded.fetch_add(1, Ordering::AcqRel);
        // The recorder outlives every sender.
        let _ = self.sender.send(end);
    }

    /// How many are not recorded yet.
    pub(super) fn unrecorded(&self) -> usize {
        self.unrecorded.load(Ordering::Acquire)
    }
}

/// Records what is sent to its [`Ends`].
pub(super) struct Recorder {
    database: Database,
    incoming: mpsc::UnboundedReceiver<ClaimEnd>,
    unrecorded: Arc<AtomicUsize>,
}

impl Recorder {
    /// A recorder, and where to send the ends of claims.
    pub(super) fn new(database: Database) -> (Self, Ends) {
        let (sender, incoming) = mpsc::unbounded_channel();
        let unrecorded = Arc::<AtomicUsize>::default();
        let recorder = Self {
            database,
            incoming,
            unrecorded: Arc::clone(&unrecorded),
        };
        (recorder, Ends { sender, unrecorded })
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

    /// Records a batch, and returns what has to be recorded again.
    async fn record(&self, batch: Vec<ClaimEnd>) -> Vec<ClaimEnd> {
        let shared = Arc::new(batch);
        let ends = Arc::clone(&shared);
        let record = move |connection: &mut Connection| -> Result<_, Error> {
            let recorded = store::record_ends(connection, &ends)?;
            let others = ends.iter().map(ClaimEnd::lease);
            let others: Vec<_> = others.filter(|l| !recorded.contains(&l.delivery)).collect();
            let held = if others.is_empty() {
                HashSet::new()
            } else {
                store::load_held(connection, &others)?
            };
            Ok((recorded, held))
        };
        let recorded = self.database.run(record).await;
        let batch = Arc::into_inner(shared).unwrap_or_default();
        match recorded {
            Ok((recorded, held)) => settle(batch, &recorded, &held),
            Err(error) => {
                tracing::warn!(error = ?error, "results could not be recorded; they are recorded later");
                batch
            }
        }
    }
}

/// Reports what was recorded, and returns what met a locked row.
fn settle(
    batch: Vec<ClaimEnd>,
    recorded: &HashSet<DeliveryId>,
    held: &HashSet<DeliveryId>,
) -> Vec<ClaimEnd> {
    let mut locked = Vec::new();
    for end in batch {
        let delivery = end.lease().delivery;
        match &end {
            _ if !recorded.contains(&delivery) && held.contains(&delivery) => locked.push(end),
            ClaimEnd::Attempted(result) if recorded.contains(&delivery) => {
                report::attempt_recorded(result);
            }
            ClaimEnd::Attempted(result) => report::attempt_lost(result),
            ClaimEnd::Released(_) => {}
        }
    }
    locked
}
