//! Claims that run beside the dispatcher.

use std::sync::Arc;
use std::time::{Duration, Instant};

use database::{Connection, Database, Error};
use tokio::sync::mpsc;
use values::DeliveryId;

use crate::deliveries::worker::claims_store::{
    self as store, ClaimedDelivery, HostClaim, ScannedHosts,
};
use crate::deliveries::worker::hosts::WantedClaims;

/// The largest number of deliveries in a claim.
const BATCH: usize = 512;
/// The number of claims at a time. With two, one is planned while the other is processed.
const CONCURRENT: usize = 2;
/// How many hosts one scan covers. The next one continues after them.
const SCANNED_HOSTS: i64 = 256;
/// How often a worker that knows of no delivery that waits looks for hosts with some, and any worker for suspects.
const IDLE_INTERVAL: Duration = Duration::from_secs(1);
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

/// What a claim did.
#[derive(Default)]
pub(super) struct Claimed {
    pub(super) rows: Vec<ClaimedDelivery>,
    /// How many deliveries of each host were asked for.
    pub(super) asked: Vec<(Arc<str>, usize)>,
    /// Hosts that have no further due deliveries.
    pub(super) without_more: Vec<Arc<str>>,
    pub(super) failed: bool,
    /// It failed, and may have claimed deliveries that are not in `rows`.
    pub(super) may_have_more: bool,
}

/// What ended.
pub(super) enum Ended {
    /// A claim of known deliveries, or of those of hosts.
    Claim(Claimed),
    /// A claim of a delivery to be tried apart from others.
    SuspectClaim(Claimed),
    /// A scan for hosts that may have due deliveries.
    Scan(ScannedHosts),
    /// The release of all claims; `false` if it failed.
    Release(bool),
}

/// Runs claims and scans, and returns what they did.
pub(super) struct Claims {
    database: Database,
    results: mpsc::UnboundedReceiver<Ended>,
    sender: mpsc::UnboundedSender<Ended>,
    claiming: usize,
    scanning: bool,
    claiming_suspect: bool,
    releasing: bool,
    /// The host after which the next scan starts.
    cursor: String,
    paused_until: Option<Instant>,
    next_idle_scan: Instant,
    next_suspect: Instant,
    /// Whether the last scan found a host, be its deliveries due or not.
    found_hosts: bool,
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
            next_idle_scan: Instant::now(),
            next_suspect: Instant::now(),
            found_hosts: false,
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
        let claim = move |connection: &mut Connection| claim(connection, &request);
        self.spawn(claim, |claimed| {
            let claimed = claimed.unwrap_or_else(|error| Claimed::failed(&error));
            Ended::Claim(Claimed { asked, ..claimed })
        });
    }

    /// Claims a delivery that may end workers, if there is one and no other was looked for a moment ago.
    pub(super) fn claim_suspect(&mut self, worker: i32) {
        let now = Instant::now();
        if self.claiming_suspect || now < self.next_suspect {
            return;
        }
        self.next_suspect = now + IDLE_INTERVAL;
        self.claiming_suspect = true;
        let claim = move |connection: &mut Connection| {
            let suspect = store::claim_suspect(connection, worker)?;
            Ok(Claimed {
                rows: suspect.into_iter().collect(),
                ..Claimed::default()
            })
        };
        self.spawn(claim, |claimed| {
            Ended::SuspectClaim(claimed.unwrap_or_else(|error| Claimed::failed(&error)))
        });
    }

    /// Looks for hosts with due deliveries, unless a scan is under way. If the dispatcher `is_idle`, and the last scan
    /// found nothing that waits, only once in a while: messages name new deliveries.
    pub(super) fn scan(&mut self, is_idle: bool) {
        let now = Instant::now();
        let is_early = is_idle && !self.found_hosts && now < self.next_idle_scan;
        if self.scanning || is_early {
            return;
        }
        self.next_idle_scan = now + IDLE_INTERVAL;
        self.scanning = true;
        let after = self.cursor.clone();
        let scan = move |connection: &mut Connection| {
            Ok(store::scan_hosts(connection, &after, SCANNED_HOSTS)?)
        };
        self.spawn(scan, |found| Ended::Scan(found.unwrap_or_default()));
    }

    /// Releases every claim of a worker, which must know of none.
    pub(super) fn release_all(&mut self, worker: i32) {
        if self.releasing {
            return;
        }
        self.releasing = true;
        let release =
            move |connection: &mut Connection| Ok(store::release_all(connection, worker)?);
        self.spawn(release, |released| Ended::Release(released.is_ok()));
    }

    /// Waits for the next one to end. It is safe to cancel.
    pub(super) async fn next(&mut self) -> Ended {
        // The sender is never dropped before.
        let ended = self.results.recv().await;
        let ended = ended.unwrap_or(Ended::Scan(ScannedHosts::default()));
        let failed = match &ended {
            Ended::Claim(claimed) => {
                self.claiming = self.claiming.saturating_sub(1);
                claimed.failed
            }
            Ended::SuspectClaim(claimed) => {
                self.claiming_suspect = false;
                claimed.failed
            }
            Ended::Scan(found) => {
                self.scanning = false;
                self.cursor.clone_from(&found.last);
                self.found_hosts = found.found_hosts;
                false
            }
            Ended::Release(done) => {
                self.releasing = false;
                !done
            }
        };
        if failed {
            self.paused_until = Some(Instant::now() + PAUSE);
        }
        ended
    }

    /// Runs `work` beside the dispatcher, and passes on what `ended` makes of its result.
    fn spawn<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut Connection) -> Result<T, Error> + Send + 'static,
        ended: impl FnOnce(Result<T, Error>) -> Ended + Send + 'static,
    ) {
        let (database, sender) = (self.database.clone(), self.sender.clone());
        tokio::spawn(async move {
            let result = database.run(work).await;
            let result =
                result.inspect_err(|error| error.warn("due deliveries could not be claimed"));
            // The dispatcher may have stopped.
            let _ = sender.send(ended(result));
        });
    }
}

impl Claimed {
    fn failed(error: &Error) -> Self {
        Self {
            failed: true,
            // Without a connection nothing was sent.
            may_have_more: !matches!(error, Error::Busy),
            ..Self::default()
        }
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
                claimed.may_have_more = true;
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
