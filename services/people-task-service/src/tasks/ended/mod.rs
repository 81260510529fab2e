//! The feed of tasks that have ended, by which gateways learn when to answer the callers that wait for them.

pub(crate) mod routes;
mod store;

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use chrono::{DateTime, Utc};
use database::{Connection, Database, Error};
use futures_util::{Stream, stream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;
use values::TaskId;

use self::store::{Line, ended_since};

/// How long a response lasts: less than the time that any request may take. The gateway then asks again.
const LIFETIME: Duration = Duration::from_secs(60);

/// The pause between two reads of the audit log.
const PAUSE: Duration = Duration::from_millis(20);

/// Reading takes at most this part of the time.
const MAX_SHARE: u32 = 10;

/// How far back each read goes. An entry has the time at which its transaction began, and is seen when it has ended.
const OVERLAP: Duration = Duration::from_millis(500);

/// How far back one read in each [`LONG_INTERVAL`] goes, for transactions that the database has kept waiting.
const LONG_OVERLAP: Duration = Duration::from_secs(30);
const LONG_INTERVAL: Duration = Duration::from_secs(3);

/// How often there is a line even if no task has ended.
const HEARTBEAT: Duration = Duration::from_secs(1);

const MAX_LISTENERS: usize = 64;

/// What the feed reads, how many gateways may listen, and when they stop.
pub(crate) struct EndedTasks {
    database: Database,
    listeners: Arc<Semaphore>,
    stopping: CancellationToken,
}

impl EndedTasks {
    pub(crate) fn new(database: Database, stopping: CancellationToken) -> Self {
        Self {
            database,
            listeners: Arc::new(Semaphore::new(MAX_LISTENERS)),
            stopping,
        }
    }
}

/// A gateway that reads the feed.
pub(super) struct Listener {
    feed: Arc<EndedTasks>,
    _permit: OwnedSemaphorePermit,
    since: Option<DateTime<Utc>>,
    /// The tasks of which it was told, and when, as long as reads can find them again.
    told: HashMap<TaskId, Instant>,
    until: Instant,
    last_line: Option<Instant>,
    next_long_read: Instant,
}

impl Listener {
    /// Starts to listen, from a cursor or from now on; `None` if too many gateways do.
    pub(super) fn new(feed: Arc<EndedTasks>, since: Option<DateTime<Utc>>) -> Option<Self> {
        Some(Self {
            _permit: Arc::clone(&feed.listeners).try_acquire_owned().ok()?,
            feed,
            since,
            told: HashMap::new(),
            until: Instant::now() + LIFETIME,
            last_line: None,
            next_long_read: Instant::now(),
        })
    }

    /// The lines, until the process stops, the database fails, or the time of the response is over.
    fn lines(self) -> impl Stream<Item = Line> {
        stream::unfold(self, |mut listener| async move {
            let line = listener.line().await?;
            Some((line, listener))
        })
    }

    async fn line(&mut self) -> Option<Line> {
        let stopping = self.feed.stopping.clone();
        while Instant::now() < self.until {
            let started = Instant::now();
            let read = stopping.run_until_cancelled(self.read()).await?;
            let warn = |error: &Error| error.warn("the tasks that have ended could not be read");
            let mut line = read.inspect_err(warn).ok()?;
            let now = Instant::now();
            let told = &mut self.told;
            told.retain(|_, at| now.duration_since(*at) < 2 * LONG_OVERLAP);
            line.tasks.retain(|task| told.insert(*task, now).is_none());
            self.since = Some(line.cursor);
            let is_due = |last: Instant| last.elapsed() >= HEARTBEAT;
            if !line.tasks.is_empty() || self.last_line.is_none_or(is_due) {
                self.last_line = Some(Instant::now());
                return Some(line);
            }
            let pause = PAUSE.max(started.elapsed() * MAX_SHARE);
            stopping.run_until_cancelled(sleep(pause)).await?;
        }
        None
    }

    async fn read(&mut self) -> Result<Line, Error> {
        let now = Instant::now();
        let overlap = if now >= self.next_long_read {
            self.next_long_read = now + LONG_INTERVAL;
            LONG_OVERLAP
        } else {
            OVERLAP
        };
        let since = self.since;
        let load = move |connection: &mut Connection| ended_since(connection, since, overlap);
        self.feed.database.run(load).await
    }
}
