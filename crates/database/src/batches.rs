use std::collections::HashMap;
use std::hash::Hash;
use std::ops::Range;
use std::sync::Arc;

use tokio::sync::{mpsc, oneshot};
use tracing::{Instrument as _, Span};

use crate::{Connection, Database, Error};

/// How requests are taken together.
#[derive(Debug, Clone, Copy)]
pub struct BatchLimits {
    /// The largest number of requests in a batch.
    pub requests: usize,
    /// How many requests may wait before more are refused with [`Error::Busy`].
    pub waiting: usize,
}

impl BatchLimits {
    /// The limits of a service.
    pub const SERVICE: Self = Self {
        requests: 64,
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
/// One batch is processed at a time, and the requests that come meanwhile are the next one. So none waits longer than it
/// would alone, and batches grow with the load. A request that lost a race is repeated alone, beside the next batches,
/// and so is each request of a batch that fails as a whole.
#[derive(Debug)]
pub struct Batches<Request, Response, E> {
    queue: mpsc::Sender<(Request, Caller<Response, E>)>,
}

#[derive(Debug)]
struct Caller<Response, E> {
    reply: oneshot::Sender<Result<Response, E>>,
    span: Span,
}

impl<Response, E> Caller<Response, E> {
    fn reply(self, response: Result<Response, E>) {
        // The caller may have stopped waiting.
        let _ = self.reply.send(response);
    }
}

struct Worker<Request, Response, E> {
    database: Database,
    process: Box<Process<Request, Response, E>>,
}

impl<Request, Response, E> Batches<Request, Response, E>
where
    Request: Send + Sync + 'static,
    Response: Send + 'static,
    E: From<Error> + Send + 'static,
{
    /// Batches that `process` handles with one connection, outside a transaction. They run on the current runtime until
    /// this is dropped and every request has its response.
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
        let (queue, mut waiting) = mpsc::channel(limits.waiting);
        let worker = Arc::new(Worker {
            database,
            process: Box::new(process),
        });
        tokio::spawn(async move {
            let mut batch = Vec::new();
            while waiting.recv_many(&mut batch, limits.requests).await > 0 {
                worker.process(std::mem::take(&mut batch)).await;
            }
        });
        Self { queue }
    }

    /// Processes a request in the next batch. It is processed even if the caller stops waiting.
    ///
    /// # Errors
    /// What the request's part of the batch returns, or [`Error::Busy`] if too many requests wait.
    pub async fn run(&self, request: Request) -> Result<Response, E> {
        let (reply, outcome) = oneshot::channel();
        let span = telemetry::current_span();
        let caller = Caller { reply, span };
        let queued = self.queue.try_send((request, caller));
        queued.map_err(|_| Error::Busy)?;
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
    /// Processes a batch, and lets those of its requests be repeated that have no response then.
    async fn process(self: &Arc<Self>, batch: Vec<(Request, Caller<Response, E>)>) {
        let (requests, callers): (Vec<_>, Vec<_>) = batch.into_iter().unzip();
        let requests = Arc::new(requests);
        metrics::histogram!("database_batch_requests")
            .record(u32::try_from(requests.len()).unwrap_or(u32::MAX));
        let span = telemetry::shared_span("batch", callers.iter().map(|caller| &caller.span));
        let processed = self.run(&requests, 0..requests.len(), Round::First);
        let outcomes = processed.instrument(span).await;
        let outcomes = outcomes.unwrap_or_else(|error| without_outcome(requests.len(), &error));
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

    async fn repeat(
        self: Arc<Self>,
        requests: Arc<Vec<Request>>,
        number: usize,
        caller: Caller<Response, E>,
    ) {
        let processed = self.run(&requests, number..number + 1, Round::Repeat).await;
        let outcome = processed.map(|mut outcomes| outcomes.pop().flatten());
        caller.reply(match outcome {
            Ok(Some(outcome)) => outcome,
            Ok(None) => Err(Error::Contended("the request lost a race again".into()).into()),
            Err(error) => Err(error.into()),
        });
    }

    async fn run(
        self: &Arc<Self>,
        requests: &Arc<Vec<Request>>,
        range: Range<usize>,
        round: Round,
    ) -> Result<BatchOutcomes<Response, E>, Error> {
        let (worker, requests) = (Arc::clone(self), Arc::clone(requests));
        let work = move |connection: &mut Connection| {
            let requests = requests.get(range).unwrap_or_default();
            (worker.process)(connection, requests, round)
        };
        self.database.run(work).await
    }
}

/// What becomes of the requests of a batch that failed. One of them may have broken it, so each is repeated, unless it was
/// alone. It is not known what a batch did whose connection broke, so its requests fail.
fn without_outcome<Response, E: From<Error>>(
    requests: usize,
    error: &Error,
) -> BatchOutcomes<Response, E> {
    let is_repeated = requests > 1 && matches!(error, Error::Statement(_) | Error::Contended(_));
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
