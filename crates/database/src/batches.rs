use std::collections::{HashMap, VecDeque};
use std::hash::Hash;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Instant;

use parking_lot::Mutex;
use tokio::runtime::Handle;
use tokio::sync::oneshot;
use tracing::{Instrument as _, Span};

use crate::pool::record_wait;
use crate::{Connection, Database, Error};

/// How requests are taken together.
#[derive(Debug, Clone, Copy)]
pub struct BatchLimits {
    /// The largest number of requests in a batch.
    pub requests: usize,
    /// How many requests must wait for a batch to begin beside another one. Smaller batches cost more than the time in which
    /// the processor would wait for the other one's commit.
    pub beside: usize,
    /// How many requests may wait before more are refused with [`Error::Busy`].
    pub waiting: usize,
}

impl BatchLimits {
    /// The limits of a service, with one batch at a time.
    pub const SERVICE: Self = Self {
        requests: 64,
        beside: usize::MAX,
        waiting: 1_024,
    };
}

/// How often a request was tried.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Round {
    /// Together with others, for none of which it may wait.
    First,
    /// Alone, because it lost a race or its batch failed. It may wait.
    Repeat,
}

/// What became of each request of a batch, in their order: `None` if it lost a race and must be repeated.
pub type BatchOutcomes<Response, E> = Vec<Option<Result<Response, E>>>;

type Process<Request, Response, E> = dyn Fn(&mut Connection, &[Request], Round) -> Result<BatchOutcomes<Response, E>, Error>
    + Send
    + Sync;

/// Takes requests that wait for the database together, so that they share round trips and a commit.
///
/// The requests that come while a batch is processed are the next one, so batches grow with the load. It begins when the
/// other one has ended, or beside it when it is [large enough](BatchLimits::beside); there are never more than two at a time.
/// A request that lost a race is repeated alone, beside the next batches, and so is each request of a batch that fails as a
/// whole. If no connection can be opened, all that wait fail at once, and what has waited for longer than the pool's timeout
/// is not processed any more: its caller may have left.
pub struct Batches<Request, Response, E> {
    worker: Arc<Worker<Request, Response, E>>,
    runtime: Handle,
}

#[derive(Debug)]
struct Caller<Response, E> {
    reply: oneshot::Sender<Result<Response, E>>,
    span: Span,
    since: Instant,
}

impl<Response, E> Caller<Response, E> {
    fn reply(self, response: Result<Response, E>) {
        // The caller may have stopped waiting.
        let _ = self.reply.send(response);
    }
}

struct Worker<Request, Response, E> {
    database: Database,
    limits: BatchLimits,
    process: Box<Process<Request, Response, E>>,
    queue: Mutex<Queue<Request, Response, E>>,
}

struct Queue<Request, Response, E> {
    waiting: VecDeque<(Request, Caller<Response, E>)>,
    /// How many threads take batches from the queue. Each ends when there is none for it.
    threads: usize,
}

impl<Request, Response, E> Queue<Request, Response, E> {
    /// Whether enough waits for a batch beside those of so many threads.
    fn has_batch(&self, others: usize, limits: BatchLimits) -> bool {
        match others {
            0 => !self.waiting.is_empty(),
            1 => self.waiting.len() >= limits.beside,
            _ => false,
        }
    }
}

impl<Request, Response, E> Batches<Request, Response, E>
where
    Request: Send + Sync + 'static,
    Response: Send + 'static,
    E: From<Error> + Send + 'static,
{
    /// Batches that `process` handles with one connection, outside a transaction, on threads of the current runtime.
    pub fn new(
        database: Database,
        limits: BatchLimits,
        process: impl Fn(
            &mut Connection,
            &[Request],
            Round,
        ) -> Result<BatchOutcomes<Response, E>, Error>
        + Send
        + Sync
        + 'static,
    ) -> Self {
        let queue = Queue {
            waiting: VecDeque::new(),
            threads: 0,
        };
        let worker = Worker {
            database,
            limits,
            process: Box::new(process),
            queue: Mutex::new(queue),
        };
        Self {
            worker: Arc::new(worker),
            runtime: Handle::current(),
        }
    }

    /// Processes a request in the next batch. A caller that stops waiting does not take it back.
    ///
    /// # Errors
    /// What the request's part of the batch returns, or [`Error::Busy`] if too many requests wait, or it waited too long.
    pub async fn run(&self, request: Request) -> Result<Response, E> {
        let (reply, outcome) = oneshot::channel();
        let (span, since) = (telemetry::current_span(), Instant::now());
        if self.worker.add(request, Caller { reply, span, since })? {
            let worker = Arc::clone(&self.worker);
            self.runtime.spawn_blocking(move || worker.serve());
        }
        let outcome = outcome.await;
        outcome.unwrap_or_else(|_| Err(Error::Panicked.into()))
    }
}

impl<Request, Response, E> Worker<Request, Response, E>
where
    Request: Send + Sync + 'static,
    Response: Send + 'static,
    E: From<Error> + Send + 'static,
{
    /// Adds a request to the queue. Returns whether the caller must start a thread that serves it.
    fn add(&self, request: Request, caller: Caller<Response, E>) -> Result<bool, Error> {
        let mut queue = self.queue.lock();
        if queue.waiting.len() >= self.limits.waiting {
            return Err(Error::Busy);
        }
        queue.waiting.push_back((request, caller));
        let is_started = queue.has_batch(queue.threads, self.limits);
        queue.threads += usize::from(is_started);
        Ok(is_started)
    }

    /// Processes batches until there is none for it, on the thread that blocks for the database. A task that waited for that
    /// thread would cost each batch two more changes of threads.
    fn serve(self: Arc<Self>) {
        let runtime = Handle::current();
        while let Some(batch) = self.next_batch() {
            let process = AssertUnwindSafe(|| runtime.block_on(self.process(batch)));
            // A panic drops the replies of its batch, so their callers get an error. Later batches do not.
            let _ = catch_unwind(process);
        }
    }

    fn next_batch(&self) -> Option<Vec<(Request, Caller<Response, E>)>> {
        let mut queue = self.queue.lock();
        let timeout = self.database.timeout;
        let is_late = |(_, caller): &(_, Caller<_, _>)| caller.since.elapsed() > timeout;
        while let Some((_, late)) = queue.waiting.pop_front_if(|waiting| is_late(waiting)) {
            record_wait(late.since);
            late.reply(Err(Error::Busy.into()));
        }
        let others = queue.threads.saturating_sub(1);
        if !queue.has_batch(others, self.limits) {
            queue.threads = others;
            return None;
        }
        let number = queue.waiting.len().min(self.limits.requests);
        Some(queue.waiting.drain(..number).collect())
    }

    /// Processes a batch, and lets those of its requests be repeated that have no response then.
    async fn process(self: &Arc<Self>, batch: Vec<(Request, Caller<Response, E>)>) {
        let (requests, callers): (Vec<_>, Vec<_>) = batch.into_iter().unzip();
        let requests = Arc::new(requests);
        metrics::histogram!("database_batch_requests")
            .record(u32::try_from(requests.len()).unwrap_or(u32::MAX));
        let span = telemetry::shared_span("batch", callers.iter().map(|caller| &caller.span));
        let work =
            |connection: &mut Connection| (self.process)(connection, &requests, Round::First);
        let since: Vec<_> = callers.iter().map(|caller| caller.since).collect();
        let outcomes = self.database.run_here(&since, work);
        let outcomes = outcomes.instrument(span).await;
        if let Err(error) = &outcomes
            && error.is_unreachable()
        {
            self.fail_waiting(error);
        }
        let outcomes = outcomes.unwrap_or_else(|error| without_outcome(requests.len(), error));
        for (number, (caller, outcome)) in callers.into_iter().zip(outcomes).enumerate() {
            match outcome {
                Some(outcome) => caller.reply(outcome),
                None => {
                    let span = caller.span.clone();
                    let repeat = Arc::clone(self).repeat(Arc::clone(&requests), number, caller);
                    tokio::spawn(repeat.instrument(span));
                }
            }
        }
    }

    /// Otherwise each batch that waits would try to connect for as long as this one did.
    fn fail_waiting(&self, error: &Error) {
        let waiting = std::mem::take(&mut self.queue.lock().waiting);
        for (_, caller) in waiting {
            record_wait(caller.since);
            caller.reply(Err(error.for_another_request().into()));
        }
    }

    async fn repeat(
        self: Arc<Self>,
        requests: Arc<Vec<Request>>,
        number: usize,
        caller: Caller<Response, E>,
    ) {
        let worker = Arc::clone(&self);
        let work = move |connection: &mut Connection| {
            let request = requests.get(number..=number).unwrap_or_default();
            (worker.process)(connection, request, Round::Repeat)
        };
        let processed = self.database.run(work).await;
        let outcome = processed.map(|mut outcomes| outcomes.pop().flatten());
        caller.reply(match outcome {
            Ok(Some(outcome)) => outcome,
            Ok(None) => Err(Error::Contended("the request lost a race again".into()).into()),
            Err(error) => Err(error.into()),
        });
    }
}

/// What becomes of the requests of a batch that failed. One of them may have broken it, so each is repeated, unless it was
/// alone. It is not known what a batch did whose connection broke, so its requests fail.
fn without_outcome<Response, E: From<Error>>(
    requests: usize,
    error: Error,
) -> BatchOutcomes<Response, E> {
    if requests == 1 {
        return vec![Some(Err(error.into()))];
    }
    let is_repeated = matches!(error, Error::Statement(_) | Error::Contended(_));
    if is_repeated {
        tracing::warn!(error = ?error, requests, "a batch failed; each request is repeated alone");
    }
    let outcome = |_| (!is_repeated).then(|| Err(error.for_another_request().into()));
    (0..requests).map(outcome).collect()
}

/// Finds rows by their keys. Keys that are looked up while another statement is under way share the next one.
///
/// A row is as it was committed before the lookup, or later.
pub type Lookups<Key, Row> = Batches<Key, Option<Row>, Error>;

/// Returns the rows of keys, of which some may be the same.
type Find<Key, Row> = fn(&mut Connection, &[Key]) -> Result<HashMap<Key, Row>, Error>;

/// Starts lookups with `find`, like [`Batches::new`].
pub fn lookups<Key: Copy + Eq + Hash + Send + Sync + 'static, Row: Clone + Send + 'static>(
    database: Database,
    limits: BatchLimits,
    find: Find<Key, Row>,
) -> Lookups<Key, Row> {
    Batches::new(database, limits, move |connection, keys: &[Key], _| {
        let rows = find(connection, keys)?;
        let outcomes = keys.iter().map(|key| Some(Ok(rows.get(key).cloned())));
        Ok(outcomes.collect())
    })
}
