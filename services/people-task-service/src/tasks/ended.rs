//! The feed of tasks that have ended, by which gateways learn when to answer the callers that wait for them.

use std::collections::HashMap;
use std::convert::Infallible;
use std::time::Duration;

use actix_web::web::{Bytes, Data};
use actix_web::{HttpResponse, get};
use chrono::{DateTime, Utc};
use database::{Connection, Database, Error};
use futures_util::{Stream, stream};
use http_kit::{Problem, Query};
use serde::Serialize;
use tokio::sync::Semaphore;
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;
use values::TaskId;

use crate::tasks::store::ended::{Ended, ended_since};

/// How long a response lasts: less than the time that any request may take. The gateway then asks again.
const LIFETIME: Duration = Duration::from_secs(60);

/// The pause between two reads of the audit log.
const PAUSE: Duration = Duration::from_millis(20);

/// Reading takes at most this part of the time.
const MAX_SHARE: u32 = 10;

/// How far back each read goes. An entry has the time at which its transaction began, and is seen when it has ended.
const OVERLAP: Duration = Duration::from_millis(500);

/// How far back one read in each [`LONG_INTERVAL`] goes, for transactions that the database has kept waiting.
const LONG_OVERLAP: Duration = Duration::from_secs(10);
const LONG_INTERVAL: Duration = Duration::from_secs(1);

/// How often there is a line even if no task has ended.
const HEARTBEAT: Duration = Duration::from_secs(1);

/// How many gateways may listen.
const MAX_LISTENERS: usize = 64;

/// What the feed reads, and when it stops.
#[derive(Debug)]
pub(crate) struct EndedTasks {
    database: Database,
    listeners: Semaphore,
    stopping: CancellationToken,
}

impl EndedTasks {
    pub(crate) fn new(database: Database, stopping: CancellationToken) -> Self {
        Self {
            database,
            listeners: Semaphore::new(MAX_LISTENERS),
            stopping,
        }
    }
}

/// A line of the feed.
#[derive(Serialize)]
struct Line {
    /// Where the next response continues, if it is asked for within a minute.
    cursor: DateTime<Utc>,
    /// Tasks that have ended. One may occur twice.
    tasks: Vec<TaskId>,
}

/// The tasks that end from now on, or since the cursor of an earlier response, as lines of JSON. Internal: the gateway
/// does not route it and the OpenAPI document does not contain it.
#[get("/internal/tasks/ended")]
pub(crate) async fn list_ended_tasks(
    query: Query,
    feed: Data<EndedTasks>,
) -> Result<HttpResponse, Problem> {
    let since = query.first("cursor").map(str::parse).transpose();
    let since = since.map_err(|_| Problem::not_found("cursor"))?;
    let listening = feed.listeners.try_acquire().map(|permit| permit.forget());
    listening.map_err(|_| Problem::unavailable("overloaded", "Too many gateways listen."))?;
    let listener = Listener {
        feed: Data::clone(&feed),
        since,
        told: HashMap::new(),
        until: Instant::now() + LIFETIME,
        last_line: None,
        next_long_read: Instant::now(),
    };
    let response = HttpResponse::Ok()
        .content_type("application/x-ndjson")
        .streaming(lines(listener));
    Ok(response)
}

/// A gateway that reads the feed.
struct Listener {
    feed: Data<EndedTasks>,
    since: Option<DateTime<Utc>>,
    /// The tasks of which it was told, and when, as long as reads can find them again.
    told: HashMap<TaskId, Instant>,
    until: Instant,
    last_line: Option<Instant>,
    next_long_read: Instant,
}

impl Drop for Listener {
    fn drop(&mut self) {
        self.feed.listeners.add_permits(1);
    }
}

/// The lines, until the process stops, the database fails, or the time of the response is over.
fn lines(listener: Listener) -> impl Stream<Item = Result<Bytes, Infallible>> {
    stream::unfold(listener, |mut listener| async move {
        let line = listener.line().await?;
        let mut line = serde_json::to_vec(&line).ok()?;
        line.push(b'\n');
        Some((Ok(line.into()), listener))
    })
}

impl Listener {
    async fn line(&mut self) -> Option<Line> {
        let stopping = self.feed.stopping.clone();
        while Instant::now() < self.until {
            let started = Instant::now();
            let ended = stopping.run_until_cancelled(self.read()).await?;
            let ended = ended
                .inspect_err(|error| {
                    tracing::warn!(?error, "the tasks that have ended could not be read")
                })
                .ok()?;
            let tasks = self.new_ones(ended.tasks);
            self.since = Some(ended.at);
            if !tasks.is_empty()
                || self
                    .last_line
                    .is_none_or(|last| last.elapsed() >= HEARTBEAT)
            {
                self.last_line = Some(Instant::now());
                return Some(Line {
                    cursor: ended.at,
                    tasks,
                });
            }
            let pause = PAUSE.max(started.elapsed() * MAX_SHARE);
            stopping.run_until_cancelled(sleep(pause)).await?;
        }
        None
    }

    async fn read(&mut self) -> Result<Ended, Error> {
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

    fn new_ones(&mut self, mut tasks: Vec<TaskId>) -> Vec<TaskId> {
        let now = Instant::now();
        self.told
            .retain(|_, at| now.duration_since(*at) < 2 * LONG_OVERLAP);
        tasks.retain(|task| self.told.insert(*task, now).is_none());
        tasks
    }
}
