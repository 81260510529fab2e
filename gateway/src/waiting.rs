//! Callers that wait for the end of a task.
//!
//! A caller that waits holds only its own connection: the gateway asks the service once at the beginning, and once more,
//! with all the checks of a request, when the feed of the service names the task or the time is over. Both questions
//! take turns.

use std::collections::HashMap;
use std::io;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use fairness::{FairQueue, Refused, Remainder, Share, Shares};
use futures_util::{StreamExt as _, TryStreamExt as _};
use http_body_util::BodyExt as _;
use http_kit::{Problem, client_network};
use parking_lot::Mutex;
use serde::Deserialize;
use telemetry::Outage;
use tokio::sync::{Notify, watch};
use tokio::time::{Instant, sleep, sleep_until, timeout};
use tokio_util::codec::{FramedRead, LinesCodec};
use tokio_util::io::StreamReader;
use tokio_util::sync::CancellationToken;
use values::TaskId;

use crate::limits::concurrency::refusal;
use crate::settings::WaitingSettings;
use crate::upstream::{self, BaseAddress, UpstreamClient};

/// How many questions for callers that wait are at the service at the same time. They come on top of the requests in
/// flight, so that they take nothing from them, and must not flood the service when all callers come or end together.
const QUESTIONS: u64 = 256;

/// How many callers have an answer that they have not read to its end.
const ANSWERS: u64 = 1_024;

/// The longest pause between two lines of the feed, of which the service sends one each second.
const SILENCE: Duration = Duration::from_secs(5);

/// How long a cursor leads to everything that has happened since.
const CURSOR_LIFETIME: Duration = Duration::from_secs(30);

/// The pause after a response that failed or ended early.
const PAUSE: Duration = Duration::from_millis(500);

/// After this many lines without a caller that waits, the feed is no longer read.
const IDLE_LINES: u32 = 10;

/// The longest line in bytes: far more than all tasks that can end in the time between two lines.
const MAX_LINE: usize = 16 * 1024 * 1024;

pub(crate) struct Waiting {
    longest: Duration,
    waiters: Mutex<Waiters>,
    /// The first caller has come.
    begun: Notify,
    questions: Arc<Shares<IpAddr>>,
    answers: Arc<Shares<IpAddr>>,
    /// The process stops, and answers everyone.
    stopping: CancellationToken,
}

struct Waiters {
    /// Each network may have every place that no other one needs. They stay in the queue, because all wait at the same
    /// time.
    places: FairQueue<IpAddr, CancellationToken>,
    tasks: HashMap<TaskId, watch::Sender<()>>,
}

impl Waiting {
    pub(crate) fn new(settings: WaitingSettings, stopping: CancellationToken) -> Arc<Self> {
        let waiters = Waiters {
            places: FairQueue::new(settings.max),
            tasks: HashMap::new(),
        };
        Arc::new(Self {
            longest: settings.longest,
            waiters: Mutex::new(waiters),
            begun: Notify::new(),
            // Only those wait for a turn who have a place.
            questions: Shares::with_waiting(Remainder(QUESTIONS), u64::MAX),
            answers: Shares::with_waiting(Remainder(ANSWERS), u64::MAX),
            stopping,
        })
    }

    /// Takes a place for a caller, if there is one. It hears of ends from now on.
    pub(crate) fn enter(self: &Arc<Self>, client: IpAddr, task: TaskId) -> Result<Place, Problem> {
        let network = client_network(client);
        let displaced = CancellationToken::new();
        let mut waiters = self.waiters.lock();
        let pushed = waiters.places.push(&network, displaced.clone());
        let (number, other) = pushed.map_err(refusal)?;
        let ended = waiters.tasks.entry(task).or_default().subscribe();
        drop(waiters);
        if let Some(other) = other {
            metrics::counter!("gateway_waiting_displaced_total").increment(1);
            other.cancel();
        }
        self.begun.notify_one();
        Ok(Place {
            waiting: Arc::clone(self),
            network,
            number,
            task,
            ended,
            displaced,
        })
    }

    pub(crate) fn record_gauge(&self) {
        let total = self.waiters.lock().places.total();
        metrics::gauge!("gateway_waiting_requests").set(u32::try_from(total).unwrap_or(u32::MAX));
    }

    fn is_empty(&self) -> bool {
        self.waiters.lock().tasks.is_empty()
    }

    async fn until_begun(&self) {
        while self.is_empty() {
            self.begun.notified().await;
        }
    }

    fn wake(&self, tasks: &[TaskId]) {
        let waiters = self.waiters.lock();
        for ended in tasks.iter().filter_map(|task| waiters.tasks.get(task)) {
            ended.send_replace(());
        }
    }

    /// Wakes everyone, because the end of a task may have been missed.
    fn wake_all(&self) {
        for ended in self.waiters.lock().tasks.values() {
            ended.send_replace(());
        }
    }
}

/// The place of a caller that waits, until it is dropped.
pub(crate) struct Place {
    waiting: Arc<Waiting>,
    network: IpAddr,
    number: u64,
    task: TaskId,
    ended: watch::Receiver<()>,
    /// Cancelled when a network with fewer places needs this one.
    displaced: CancellationToken,
}

impl Place {
    /// When the wait of a caller ends that may wait for this time.
    pub(crate) fn end(&self, wait: Duration) -> Instant {
        Instant::now() + wait.min(self.waiting.longest)
    }

    /// Waits until the service may be asked for this caller, after earlier questions of its network.
    pub(crate) async fn turn(&self) -> Result<Share<IpAddr>, Refused> {
        self.waiting.questions.acquire(self.network, 1).await
    }

    /// Waits until this caller may be answered, after earlier answers to its network that are not read yet.
    pub(crate) async fn answer_share(&self) -> Result<Share<IpAddr>, Refused> {
        self.waiting.answers.acquire(self.network, 1).await
    }

    /// Waits until the task may have ended, or the wait is over.
    pub(crate) async fn until_ended(&mut self, until: Instant) {
        tokio::select! {
            _ = self.ended.changed() => {}
            () = sleep_until(until) => {}
            () = self.displaced.cancelled() => {}
            () = self.waiting.stopping.cancelled() => {}
        }
    }

    /// Whether the wait is over, whatever the task is.
    pub(crate) fn is_over(&self, until: Instant) -> bool {
        let is_stopped = self.displaced.is_cancelled() || self.waiting.stopping.is_cancelled();
        is_stopped || Instant::now() >= until
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut waiters = self.waiting.waiters.lock();
        waiters.places.remove(&self.network, self.number);
        // Under the lock, so that of two places that are given up at the same time, one sees that it is the last.
        (_, self.ended) = watch::channel(());
        let sender = waiters.tasks.get(&self.task);
        if sender.is_some_and(watch::Sender::is_closed) {
            waiters.tasks.remove(&self.task);
        }
    }
}

/// Wakes the callers whose tasks have ended, until it is cancelled. It listens to the service only while there are some.
pub(crate) async fn listen(
    waiting: Arc<Waiting>,
    client: UpstreamClient,
    service: BaseAddress,
    shutdown: CancellationToken,
) {
    let mut cursor = None;
    let failing = Outage::new("the tasks that have ended cannot be read");
    let listen = async {
        loop {
            waiting.until_begun().await;
            let read = read_feed(&waiting, &client, &service, &mut cursor).await;
            match read {
                Ok(()) => failing.end(),
                Err(error) => {
                    failing.fail(&format_args!("{error:#}"));
                    sleep(PAUSE).await;
                }
            }
        }
    };
    shutdown.run_until_cancelled(listen).await;
}

/// A line of the service's feed of tasks that have ended.
#[derive(Deserialize)]
struct Line {
    cursor: String,
    tasks: Vec<TaskId>,
}

/// Reads one response to its end, or until there is no caller that waits. The cursor says where the next response continues,
/// and when the service said so.
async fn read_feed(
    waiting: &Waiting,
    client: &UpstreamClient,
    service: &BaseAddress,
    cursor: &mut Option<(String, Instant)>,
) -> anyhow::Result<()> {
    cursor.take_if(|(_, at)| at.elapsed() > CURSOR_LIFETIME);
    let query = cursor.as_ref();
    let query = query.map(|(cursor, _)| format!("cursor={cursor}"));
    let uri = service.uri("/internal/tasks/ended", query.as_deref())?;
    let (asked, mut has_line) = (Instant::now(), false);
    let response = timeout(SILENCE, upstream::open(client, uri)).await??;
    let body = response.into_body().into_data_stream();
    let body = StreamReader::new(body.map_err(io::Error::other));
    let mut lines = FramedRead::new(body, LinesCodec::new_with_max_length(MAX_LINE));
    let mut idle = 0;
    while idle < IDLE_LINES {
        let Some(line) = timeout(SILENCE, lines.next()).await? else {
            // While the service is overloaded or stops, it ends each response at once.
            let lasted = has_line && asked.elapsed() >= PAUSE;
            anyhow::ensure!(lasted, "the response ended early");
            return Ok(());
        };
        has_line = true;
        let line: Line = serde_json::from_str(&line?)?;
        if cursor.is_none() {
            // Some callers may have come, and their tasks have ended, before the feed began.
            waiting.wake_all();
        }
        waiting.wake(&line.tasks);
        *cursor = Some((line.cursor, Instant::now()));
        idle = if waiting.is_empty() { idle + 1 } else { 0 };
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::Duration;

    use tokio::time::Instant;
    use tokio_util::sync::CancellationToken;
    use values::TaskId;

    use super::{Place, Waiting};
    use crate::settings::WaitingSettings;

    fn waiting(max: usize) -> Arc<Waiting> {
        let longest = Duration::from_secs(50);
        Waiting::new(WaitingSettings { max, longest }, CancellationToken::new())
    }

    fn enter(waiting: &Arc<Waiting>, last: u8, task: TaskId) -> Option<Place> {
        waiting.enter([203, 0, 113, last].into(), task).ok()
    }

    #[test]
    fn one_network_cannot_take_all_places() {
        let (waiting, task) = (waiting(4), TaskId::generate());
        let large: Vec<_> = (0..5).filter_map(|_| enter(&waiting, 1, task)).collect();
        assert_eq!(large.len(), 4);
        let small: Vec<_> = (0..3).filter_map(|_| enter(&waiting, 2, task)).collect();
        assert_eq!(small.len(), 2);
        let now = Instant::now() + Duration::from_secs(9);
        let over: Vec<_> = large.iter().map(|place| place.is_over(now)).collect();
        assert_eq!(over, [false, false, true, true]);
    }

    #[tokio::test]
    async fn only_those_who_wait_for_a_task_are_woken_and_each_end_since_they_came_counts() {
        let (waiting, task) = (waiting(4), TaskId::generate());
        let mut place = enter(&waiting, 1, task).unwrap();
        let other = enter(&waiting, 1, TaskId::generate()).unwrap();
        waiting.wake(&[task]);
        place
            .until_ended(Instant::now() + Duration::from_secs(60))
            .await;
        assert!(!other.ended.has_changed().unwrap());
        drop((place, other));
        assert!(waiting.is_empty());
        assert_eq!(waiting.waiters.lock().places.total(), 0);
    }
}
