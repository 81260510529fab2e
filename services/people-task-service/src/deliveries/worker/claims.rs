//! Claims that run beside the dispatcher.

use std::sync::Arc;
use std::time::{Duration, Instant};

use database::{Connection, Database, Error};
use tokio::sync::mpsc;
use values::DeliveryId;

use crate::deliveries::worker::claims_store::{self as store, ClaimedDelivery, HostClaim};
use crate::deliveries::worker::hosts::WantedClaims;

/// The largest number of deliveries in a claim.
const BATCH: usize = 512;
/// The number of claims at a time. With two, one is planned while the other is processed.
const CONCURRENT: usize = 2;
/// How many hosts one scan covers. The next one continues after them.
const SCANNED_HOSTS: i64 = 256;
/// The pause after a failure.
const PAUSE: Duration = Duration::from_millis(300);

/// What to claim at once.
#[derive(Debug)]
pub(super) struct ClaimRequest {
    worker: i32,
    ids: Vec<DeliveryId>,
    hosts: Vec<HostClaim>,
    asked: Vec<(Arc<str>, usize)>,
    number: usize,
}

impl ClaimRequest {
    pub(super) fn new(worker: i32) -> Self {
        Self {
            worker,
            ids: Vec::new(),
            hosts: Vec::new(),
            asked: Vec::new(),
            number: 0,
        }
    }

    pub(super) fn is_full(&self) -> bool {
        self.number >= BATCH
    }

    pub(super) fn add(&mut self, host: &Arc<str>, wanted: WantedClaims) {
        let number = wanted.number();
        if number == 0 {
            return;
        }
        self.number += number;
        self.asked.push((Arc::clone(host), number));
        self.ids.extend(wanted.known);
        if wanted.more > 0 {
            let (host, number) = (Arc::clone(host), wanted.more);
            self.hosts.push(HostClaim { host, number });
        }
    }
}

/// What a claim or a scan found.
#[derive(Default)]
pub(super) struct Claimed {
    pub(super) rows: Vec<ClaimedDelivery>,
    /// How many deliveries of each host were asked for.
    pub(super) asked: Vec<(Arc<str>, usize)>,
    /// Hosts that have no further due deliveries.
    pub(super) without_more: Vec<Arc<str>>,
    /// Hosts that may have due deliveries.
    pub(super) found: Vec<String>,
    /// A delivery to be tried apart from others.
    pub(super) suspect: Option<ClaimedDelivery>,
    pub(super) failed: bool,
    /// No delivery is claimed any more.
    pub(super) released_all: bool,
    cursor: Option<String>,
    kind: Kind,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Kind {
    #[default]
    Claim,
    Scan,
    Suspect,
    Release,
}

impl Claimed {
    /// Whether deliveries may be claimed that this worker was not told of.
    pub(super) fn may_have_claimed(&self) -> bool {
        self.failed && matches!(self.kind, Kind::Claim | Kind::Suspect)
    }
}

/// Runs claims and scans, and returns what they found.
pub(super) struct Claims {
    database: Database,
    results: mpsc::UnboundedReceiver<Claimed>,
    sender: mpsc::UnboundedSender<Claimed>,
    claiming: usize,
    scanning: bool,
    claiming_suspect: bool,
    releasing: bool,
    cursor: String,
    paused_until: Option<Instant>,
}

impl Claims {
    pub(super) fn new(database: Database) -> Self {
        let (sender, results) = mpsc::unbounded_channel();
        Self {
            database,
            results,
            sender,
            claiming: 0,
            scanning: false,
            claiming_suspect: false,
            releasing: false,
            cursor: String::new(),
            paused_until: None,
        }
    }

    /// Whether another claim may start.
    pub(super) fn has_capacity(&self) -> bool {
        self.claiming < CONCURRENT
            && self
                .paused_until
                .is_none_or(|until| until <= Instant::now())
    }

    /// Whether something may still be claimed without another call.
    pub(super) fn are_under_way(&self) -> bool {
        self.claiming > 0 || self.claiming_suspect
    }

    /// Starts a claim, unless it is empty.
    pub(super) fn start(&mut self, request: ClaimRequest) {
        if request.asked.is_empty() {
            return;
        }
        self.claiming += 1;
        let asked = request.asked.clone();
        self.spawn(Kind::Claim, asked, move |connection| {
            claim(connection, &request)
        });
    }

    /// Looks for hosts with due deliveries, unless a scan is under way.
    pub(super) fn scan(&mut self) {
        if self.scanning {
            return;
        }
        self.scanning = true;
        let mut cursor = self.cursor.clone();
        self.spawn(Kind::Scan, Vec::new(), move |connection| {
            let found = store::scan_hosts(connection, &mut cursor, SCANNED_HOSTS)?;
            Ok(Claimed {
                found,
                cursor: Some(cursor),
                ..Claimed::default()
            })
        });
    }

    /// Claims a delivery that may end workers, if there is one.
    pub(super) fn claim_suspect(&mut self, worker: i32) {
        if self.claiming_suspect {
            return;
        }
        self.claiming_suspect = true;
        self.spawn(Kind::Suspect, Vec::new(), move |connection| {
            Ok(Claimed {
                suspect: store::claim_suspect(connection, worker)?,
                ..Claimed::default()
            })
        });
    }

    /// Releases every claim of a worker, which must know of none.
    pub(super) fn release_all(&mut self, worker: i32) {
        if self.releasing {
            return;
        }
        self.releasing = true;
        self.spawn(Kind::Release, Vec::new(), move |connection| {
            store::release_all(connection, worker)?;
            Ok(Claimed {
                released_all: true,
                ..Claimed::default()
            })
        });
    }

    /// Waits for what the next one of them found. It is safe to cancel.
    pub(super) async fn next(&mut self) -> Claimed {
        // The sender is never dropped before.
        let claimed = self.results.recv().await.unwrap_or_default();
        match claimed.kind {
            Kind::Claim => self.claiming = self.claiming.saturating_sub(1),
            Kind::Scan => self.scanning = false,
            Kind::Suspect => self.claiming_suspect = false,
            Kind::Release => self.releasing = false,
        }
        if let Some(cursor) = &claimed.cursor {
            self.cursor.clone_from(cursor);
        }
        if claimed.failed {
            self.paused_until = Some(Instant::now() + PAUSE);
        }
        claimed
    }

    fn spawn(
        &self,
        kind: Kind,
        asked: Vec<(Arc<str>, usize)>,
        work: impl FnOnce(&mut Connection) -> Result<Claimed, Error> + Send + 'static,
    ) {
        let (database, sender) = (self.database.clone(), self.sender.clone());
        tokio::spawn(async move {
            let found = database.run(work).await;
            let found = found.unwrap_or_else(|error| {
                tracing::warn!(error = ?error, "due deliveries could not be claimed");
                Claimed {
                    failed: true,
                    ..Claimed::default()
                }
            });
            // The dispatcher may have stopped.
            let _ = sender.send(Claimed {
                asked,
                kind,
                ..found
            });
        });
    }
}

fn claim(connection: &mut Connection, request: &ClaimRequest) -> Result<Claimed, Error> {
    let mut claimed = Claimed::default();
    if !request.ids.is_empty() {
        claimed.rows = store::claim_known(connection, request.worker, &request.ids)?;
    }
    if !request.hosts.is_empty() {
        let rows = match store::claim_of_hosts(connection, request.worker, &request.hosts) {
            Ok(rows) => rows,
            // What the first statement has claimed is kept.
            Err(error) if !claimed.rows.is_empty() => {
                tracing::warn!(%error, "due deliveries of hosts could not be claimed");
                claimed.failed = true;
                return Ok(claimed);
            }
            Err(error) => return Err(error.into()),
        };
        for claim in &request.hosts {
            let found = rows.iter().filter(|row| *row.host == *claim.host).count();
            if found < claim.number {
                claimed.without_more.push(Arc::clone(&claim.host));
            }
        }
        claimed.rows.extend(rows);
    }
    Ok(claimed)
}
