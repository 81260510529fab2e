use std::sync::Arc;
use std::time::{Duration, Instant};

use chrono::{DateTime, Utc};
use database::{Connection, Database, Error};
use tokio::task::JoinSet;
use values::DeliveryId;

use crate::deliveries::worker::due_store::{self as store, DueRow, ScannedLanes, Trial};
use crate::deliveries::worker::lane::Wanted;
use crate::deliveries::worker::pass_on_panic;
use crate::deliveries::worker::shards::Shards;

const BATCH: usize = 512;
/// The number of loads at a time. With two, one is planned while the other is processed.
const CONCURRENT: usize = 2;
/// How many lanes one scan covers, which takes about 15 ms. The next one continues after them.
const SCANNED_LANES: i64 = 4_096;
/// How often a worker that knows of no delivery that waits looks for lanes with some, and any worker for suspects.
const IDLE_INTERVAL: Duration = Duration::from_secs(1);
/// The pause after a failure.
const PAUSE: Duration = Duration::from_millis(300);

#[derive(Debug, Default)]
pub(super) struct LoadRequest {
    ids: Vec<DeliveryId>,
    /// Lanes whose next deliveries are loaded, and at most how many.
    lanes: Vec<(Arc<str>, usize)>,
    /// Deliveries of these lanes that are not to be loaded: they are under way, or named in `ids`.
    except: Vec<DeliveryId>,
    asked: Vec<Arc<str>>,
    number: usize,
    marked_before: Option<DateTime<Utc>>,
}

impl LoadRequest {
    /// A request that marks deliveries that were created before a time, because they may have ended a worker.
    pub(super) fn new(marked_before: Option<DateTime<Utc>>) -> Self {
        Self {
            marked_before,
            ..Self::default()
        }
    }

    pub(super) fn is_full(&self) -> bool {
        self.number >= BATCH
    }

    /// Adds the deliveries of a lane, of which these are under way.
    pub(super) fn add<'a>(
        &mut self,
        lane: &Arc<str>,
        wanted: Wanted,
        under_way: impl Iterator<Item = &'a DeliveryId>,
    ) {
        self.number += wanted.number();
        self.asked.push(Arc::clone(lane));
        if wanted.more > 0 {
            self.lanes.push((Arc::clone(lane), wanted.more));
            self.except.extend(under_way);
            self.except.extend(&wanted.known);
        }
        self.ids.extend(wanted.known);
    }
}

#[derive(Default)]
pub(super) struct Loaded {
    pub(super) rows: Vec<DueRow>,
    /// The lanes of which deliveries were asked for.
    pub(super) asked: Vec<Arc<str>>,
    /// Lanes that may have further due deliveries.
    pub(super) with_more: Vec<Arc<str>>,
    pub(super) failed: bool,
    /// It failed because of a row, and not because of an outage.
    pub(super) is_unreadable: bool,
}

pub(super) enum Ended {
    /// A load of known deliveries, or of those of lanes.
    Load(Loaded),
    /// The search for a delivery to be tried apart from others.
    Trial(Trial),
    /// A scan for lanes that may have due deliveries; `None` if it failed.
    Scan(Option<ScannedLanes>),
}

/// Runs loads and scans, and returns what they found.
pub(super) struct Loads {
    database: Database,
    running: JoinSet<Ended>,
    loading: usize,
    scanning: bool,
    beginning_trial: bool,
    /// The lane after which the next scan starts.
    cursor: String,
    paused_until: Option<Instant>,
    next_idle_scan: Instant,
    next_trial: Instant,
    /// Whether the last scan found a lane, be its deliveries due or not.
    found_lanes: bool,
    /// How often the end of all lanes is to be reached without a pause between scans.
    hurried_rounds: u8,
}

impl Loads {
    pub(super) fn new(database: Database) -> Self {
        Self {
            database,
            running: JoinSet::new(),
            loading: 0,
            scanning: false,
            beginning_trial: false,
            cursor: String::new(),
            paused_until: None,
            next_idle_scan: Instant::now(),
            next_trial: Instant::now(),
            found_lanes: false,
            hurried_rounds: 0,
        }
    }

    pub(super) fn has_capacity(&self) -> bool {
        let now = Instant::now();
        self.loading < CONCURRENT && self.paused_until.is_none_or(|until| until <= now)
    }

    /// Whether deliveries may still be loaded without another call.
    pub(super) fn are_under_way(&self) -> bool {
        self.loading > 0 || self.beginning_trial
    }

    /// Starts a load, unless it is empty.
    pub(super) fn start(&mut self, request: LoadRequest) {
        if request.asked.is_empty() {
            return;
        }
        self.loading += 1;
        let asked = request.asked.clone();
        let load = move |connection: &mut Connection| load(connection, &request);
        self.spawn(load, |loaded| {
            let loaded = loaded.unwrap_or_else(|error| Loaded {
                failed: true,
                is_unreadable: matches!(error, Error::Statement(_) | Error::Panicked),
                ..Loaded::default()
            });
            Ended::Load(Loaded { asked, ..loaded })
        });
    }

    /// Looks for a delivery of these shards that may end workers, unless it did a moment ago and found none.
    pub(super) fn begin_trial(
        &mut self,
        shards: Shards,
        under_way: impl Iterator<Item = DeliveryId>,
    ) {
        let now = Instant::now();
        if self.beginning_trial || now < self.next_trial {
            return;
        }
        self.next_trial = now + IDLE_INTERVAL;
        self.beginning_trial = true;
        let under_way: Vec<_> = under_way.collect();
        let begin = move |connection: &mut Connection| {
            database::transaction(connection, |connection| {
                store::begin_trial(connection, shards, &under_way)
            })
        };
        self.spawn(begin, |trial| Ended::Trial(trial.unwrap_or_default()));
    }

    /// Looks for lanes with due deliveries, unless a scan is under way. If the dispatcher `is_idle`, and the last scan
    /// found nothing that waits, only once in a while: messages name new deliveries.
    pub(super) fn scan(&mut self, is_idle: bool) {
        let now = Instant::now();
        let is_early = is_idle && !self.found_lanes && now < self.next_idle_scan;
        if self.scanning || is_early {
            return;
        }
        self.next_idle_scan = now + IDLE_INTERVAL;
        self.scanning = true;
        let after = self.cursor.clone();
        let scan =
            move |connection: &mut Connection| store::scan_lanes(connection, &after, SCANNED_LANES);
        self.spawn(scan, |found| Ended::Scan(found.ok()));
    }

    /// Looks at all lanes as soon as possible: at those after the cursor, and then at all.
    pub(super) fn scan_all(&mut self) {
        self.hurried_rounds = 2;
        self.scan_on();
    }

    /// Scans on without a pause, if it has to.
    pub(super) fn scan_on(&mut self) {
        if self.hurried_rounds > 0 {
            self.scan(false);
        }
    }

    /// Loads a delivery again; `None` if that fails, or its row is of another version than before or deleted.
    pub(super) fn reload(&self, row: &DueRow) -> impl Future<Output = Option<DueRow>> + use<> {
        let (database, id, version) = (self.database.clone(), row.delivery_id, row.lease);
        async move {
            let load = move |connection: &mut Connection| {
                Ok::<_, Error>(store::load(connection, store::BY_ID, &[id])?)
            };
            let rows = database.run(load).await;
            let warn = |error: &Error| error.warn("a delivery could not be loaded again");
            let row = rows.inspect_err(warn).ok()?.pop();
            row.filter(|row| row.lease == version)
        }
    }

    /// Waits for the next one to end. It is safe to cancel.
    pub(super) async fn next(&mut self) -> Option<Ended> {
        let ended = pass_on_panic(self.running.join_next().await?)?;
        match &ended {
            Ended::Load(loaded) => {
                self.loading = self.loading.saturating_sub(1);
                if loaded.failed && !loaded.is_unreadable {
                    self.paused_until = Some(Instant::now() + PAUSE);
                }
            }
            Ended::Trial(trial) => {
                self.beginning_trial = false;
                if trial.row.is_some() {
                    self.next_trial = Instant::now();
                }
            }
            Ended::Scan(None) => self.scanning = false,
            Ended::Scan(Some(found)) => {
                self.scanning = false;
                if found.last.is_empty() {
                    self.hurried_rounds = self.hurried_rounds.saturating_sub(1);
                }
                self.cursor.clone_from(&found.last);
                self.found_lanes = found.found;
            }
        }
        Some(ended)
    }

    /// Runs `work` beside the dispatcher, and passes on what `ended` makes of its result.
    fn spawn<T: Send + 'static>(
        &mut self,
        work: impl FnOnce(&mut Connection) -> Result<T, Error> + Send + 'static,
        ended: impl FnOnce(Result<T, Error>) -> Ended + Send + 'static,
    ) {
        let database = self.database.clone();
        self.running.spawn(async move {
            let result = database.run(work).await;
            let warn = |error: &Error| error.warn("due deliveries could not be loaded");
            ended(result.inspect_err(warn))
        });
    }
}

fn load(connection: &mut Connection, request: &LoadRequest) -> Result<Loaded, Error> {
    let mut loaded = Loaded::default();
    if !request.ids.is_empty() {
        loaded.rows = store::load(connection, store::KNOWN, &request.ids)?;
    }
    if !request.lanes.is_empty() {
        let rows = store::load_of_lanes(connection, &request.lanes, &request.except)?;
        for (lane, number) in &request.lanes {
            let found = rows.iter().filter(|row| *row.lane == **lane).count();
            if found >= *number {
                loaded.with_more.push(Arc::clone(lane));
            }
        }
        loaded.rows.extend(rows);
    }
    if let Some(before) = request.marked_before {
        store::mark(connection, &mut loaded.rows, before)?;
    }
    Ok(loaded)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use values::DeliveryId;

    use super::{LoadRequest, Wanted};

    #[test]
    fn a_delivery_is_not_loaded_twice() {
        let lane: Arc<str> = "http://receiver.example:80 000000000000000000000001".into();
        let [named, under_way] = [DeliveryId::generate(), DeliveryId::generate()];
        let mut request = LoadRequest::new(None);
        let known = vec![named];
        request.add(&lane, Wanted { known, more: 1 }, [under_way].iter());
        assert_eq!(request.ids, [named]);
        assert_eq!(request.except, [under_way, named]);
        assert_eq!(request.lanes[0].1, 1);
    }
}
