use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::runtime::Handle;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot};
use tracing::{Instrument as _, Span};

use crate::{Connection, Database, Error};

/// How requests are taken together.
#[derive(Debug, Clone, Copy)]
pub struct BatchLimits {
    /// The largest number of requests in a batch.
    pub requests: usize,
    /// The number of batches at a time.
    pub concurrent: usize,
    /// How many requests may wait before more are refused with [`Error::Busy`].
    pub waiting: usize,
}

impl BatchLimits {
    /// The limits of a service. One batch at a time lets the others gather.
    pub const SERVICE: Self = Self {
        requests: 64,
        concurrent: 1,
        waiting: 1_024,
    };
}

/// What a batch did for each of its requests, in their order: `None` if the request must be repeated alone.
pub type BatchOutcomes<Response, E> = Vec<Option<Result<Response, E>>>;

type Together<Request, Response, E> =
    dyn Fn(&mut Connection, &[Request]) -> Result<BatchOutcomes<Response, E>, Error> + Send + Sync;
type Alone<Request, Response, E> =
    dyn Fn(&mut Connection, &Request) -> Result<Response, E> + Send + Sync;

/// Takes requests that wait for the database together, so that they share round trips and a commit.
///
/// A request that finds no batch under way starts one at once, so none waits longer than it would alone. Batches grow
/// with the load. A batch that fails as a whole is repeated request by request.
pub struct Batches<Request, Response, E> {
    shared: Arc<Shared<Request, Response, E>>,
}

struct Shared<Request, Response, E> {
    database: Database,
    limits: BatchLimits,
    waiting: Mutex<VecDeque<Waiting<Request, Response, E>>>,
    permits: Arc<Semaphore>,
    together: Box<Together<Request, Response, E>>,
    alone: Arc<Alone<Request, Response, E>>,
    /// Further batches must not end with the thread of the request that found none under way.
    runtime: Handle,
}

struct Waiting<Request, Response, E> {
    request: Request,
    caller: Caller<Response, E>,
}

/// Who waits for a response.
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

impl<Request, Response, E> Batches<Request, Response, E>
where
    Request: Send + Sync + 'static,
    Response: Send + 'static,
    E: From<Error> + Send + 'static,
{
    /// Batches that `together` processes with one connection outside a transaction, and single requests that `alone`
    /// processes. They run on the current runtime.
    pub fn new(
        database: Database,
        limits: BatchLimits,
        together: impl Fn(&mut Connection, &[Request]) -> Result<BatchOutcomes<Response, E>, Error>
        + Send
        + Sync
        + 'static,
        alone: impl Fn(&mut Connection, &Request) -> Result<Response, E> + Send + Sync + 'static,
    ) -> Self {
        let shared = Shared {
            database,
            limits,
            waiting: Mutex::default(),
            permits: Arc::new(Semaphore::new(limits.concurrent)),
            together: Box::new(together),
            alone: Arc::new(alone),
            runtime: Handle::current(),
        };
        Self {
            shared: Arc::new(shared),
        }
    }

    /// Processes a request in the next batch. It is processed even if the caller stops waiting.
    ///
    /// # Errors
    /// What the request's part of the batch returns, or [`Error::Busy`] if too many requests wait.
    pub async fn run(&self, request: Request) -> Result<Response, E> {
        let (reply, outcome) = oneshot::channel();
        let span = telemetry::current_span();
        let caller = Caller { reply, span };
        self.shared.enqueue(Waiting { request, caller })?;
        if let Some(permit) = self.shared.permit() {
            // The first batch runs where its caller waits for it, which saves a change of threads.
            tokio::spawn(Arc::clone(&self.shared).start(permit));
        }
        outcome
            .await
            .unwrap_or_else(|_| Err(Error::Panicked.into()))
    }
}

impl<Request, Response, E> Shared<Request, Response, E>
where
    Request: Send + Sync + 'static,
    Response: Send + 'static,
    E: From<Error> + Send + 'static,
{
    fn queue(&self) -> MutexGuard<'_, VecDeque<Waiting<Request, Response, E>>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn permit(&self) -> Option<OwnedSemaphorePermit> {
        Arc::clone(&self.permits).try_acquire_owned().ok()
    }

    fn enqueue(&self, waiting: Waiting<Request, Response, E>) -> Result<(), Error> {
        let mut queue = self.queue();
        if queue.len() >= self.limits.waiting {
            return Err(Error::Busy);
        }
        queue.push_back(waiting);
        Ok(())
    }

    fn take(&self) -> Vec<Waiting<Request, Response, E>> {
        let mut queue = self.queue();
        let size = queue.len().min(self.limits.requests);
        queue.drain(..size).collect()
    }

    /// Processes a batch, and lets the others be processed where they do not end with the caller.
    async fn start(self: Arc<Self>, permit: OwnedSemaphorePermit) {
        let batch = self.take();
        if !batch.is_empty() {
            self.process(batch).await;
        }
        let runtime = self.runtime.clone();
        runtime.spawn(self.work_off(permit));
    }

    /// Processes batches until no request waits.
    async fn work_off(self: Arc<Self>, permit: OwnedSemaphorePermit) {
        let mut permit = Some(permit);
        while permit.is_some() {
            let batch = self.take();
            if batch.is_empty() {
                permit = None;
                // A request that came just now found no permit.
                if !self.queue().is_empty() {
                    permit = self.permit();
                }
            } else {
                self.process(batch).await;
            }
        }
    }

    async fn process(self: &Arc<Self>, batch: Vec<Waiting<Request, Response, E>>) {
        let split = batch.into_iter().map(|w| (w.request, w.caller));
        let (requests, callers): (Vec<_>, Vec<_>) = split.unzip();
        let span = telemetry::shared_span("batch", callers.iter().map(|caller| &caller.span));
        metrics::histogram!("database_batch_requests")
            .record(u32::try_from(requests.len()).unwrap_or(u32::MAX));
        let requests = Arc::new(requests);
        let (shared, batch) = (Arc::clone(self), Arc::clone(&requests));
        let work = move |connection: &mut Connection| (shared.together)(connection, &batch);
        let outcomes = self.database.run(work).instrument(span).await;
        // Otherwise the thread still has them, which it cannot.
        let Some(requests) = Arc::into_inner(requests) else {
            return;
        };
        let waiting = requests
            .into_iter()
            .zip(callers)
            .map(|(request, caller)| Waiting { request, caller });
        match outcomes {
            Ok(outcomes) => {
                for (waiting, outcome) in waiting.zip(outcomes) {
                    match outcome {
                        Some(outcome) => waiting.caller.reply(outcome),
                        None => self.process_alone(waiting),
                    }
                }
            }
            Err(error) => self.repeat(waiting.collect(), &error),
        }
    }

    /// Repeats the requests of a batch that one of them may have broken. It is not known what a batch did whose
    /// connection broke, so its requests fail.
    fn repeat(&self, waiting: Vec<Waiting<Request, Response, E>>, error: &Error) {
        let repeatable = matches!(error, Error::Statement(_) | Error::Contended(_));
        if repeatable && waiting.len() > 1 {
            tracing::warn!(error = ?error, requests = waiting.len(), "a batch failed; each request is repeated alone");
            for waiting in waiting {
                self.process_alone(waiting);
            }
        } else {
            for waiting in waiting {
                let error = error.for_another_request();
                waiting.caller.reply(Err(error.into()));
            }
        }
    }

    fn process_alone(&self, waiting: Waiting<Request, Response, E>) {
        let (alone, database) = (Arc::clone(&self.alone), self.database.clone());
        let Waiting { request, caller } = waiting;
        let span = caller.span.clone();
        let work = async move {
            let outcome = database
                .run(move |connection| alone(connection, &request))
                .await;
            caller.reply(outcome);
        };
        self.runtime.spawn(work.instrument(span));
    }
}

impl<Request, Response, E> std::fmt::Debug for Batches<Request, Response, E> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Batches").finish_non_exhaustive()
    }
}
