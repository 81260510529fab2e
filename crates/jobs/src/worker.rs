use std::future::Future;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use database::{Connection, Database, Error};
use http_kit::Health;
use messaging::{BrokerSettings, ConsumerConfig, Disposition, Message, Publisher, Queue, consume};
use server::Running;
use telemetry::RequestContext;
use tokio_util::sync::CancellationToken;
use values::FromText as _;

use crate::store::{Claim, JobId, JobTable, Lease, RetentionRule, retain};
use crate::sweep::sweep;

/// How long one message may be held. A job that takes longer is released and published again.
const MAX_MESSAGE_TIME: Duration = Duration::from_secs(20);
const MEASURE_INTERVAL: Duration = Duration::from_secs(5);
/// The pause before a message is settled because its job could not be claimed.
const PAUSE_WITHOUT_DATABASE: Duration = Duration::from_secs(1);

/// The result of one step of a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// There is more to do now.
    Continue,
    /// The job waits: any worker may claim it after this pause.
    Yield(Duration),
    /// Nothing more to do under this claim: the step has written how the job ended or when it is tried
    /// again, or the claim was lost.
    Settled,
}

/// How the jobs of a table are claimed and processed.
pub trait Worker: Clone + Send + Sync + 'static {
    /// The identifier of a job.
    type Id: JobId;
    /// A claimed job, with what its steps need to know.
    type Job: Send + Sync + 'static;

    /// The jobs.
    const TABLE: JobTable;
    /// The queue of identifiers of due jobs.
    const QUEUE: Queue;
    /// Whether a job whose message is redelivered is claimed despite its lease. The message's previous
    /// consumer has probably died; if it has not, a step runs twice, so all steps must be repeatable.
    const CLAIM_REDELIVERED: bool;

    /// Claims a job by [`JobTable::claim`] and loads it; `None` when it is not claimable. It runs in a
    /// transaction.
    ///
    /// # Errors
    /// A statement fails. The message is requeued, in an outage once.
    fn claim(
        &self,
        connection: &mut Connection,
        claim: Claim<Self::Id>,
    ) -> Result<Option<Self::Job>, Error>;

    /// The claim on a job.
    fn lease(job: &Self::Job) -> Lease<Self::Id>;

    /// Does one step of a job's work and writes the result.
    ///
    /// # Errors
    /// The result could not be written. The job is claimed again when its lease ends.
    fn handle(&self, job: &Self::Job) -> impl Future<Output = Result<Outcome, Error>> + Send;
}

/// The resources and limits of a worker.
#[derive(Clone)]
pub struct WorkerConfig {
    /// The database of the jobs.
    pub database: Database,
    /// The broker of the queue.
    pub broker: BrokerSettings,
    /// Jobs that are processed at once.
    pub concurrency: u16,
    /// How long a claim lasts unless it is renewed.
    pub lease: Duration,
    /// Rows that the worker deletes.
    pub retention: Vec<RetentionRule>,
}

/// Starts a worker, and with it the sweep of due jobs, the backlog's gauges and retention.
pub fn run<W: Worker>(running: &mut Running, config: WorkerConfig, worker: W) {
    let (database, shutdown) = (config.database, running.shutdown());
    let (publisher, publishing) = Publisher::new(config.broker.clone(), W::QUEUE, shutdown.clone());
    running.spawn(publishing);
    let (due, swept) = (publisher.clone(), database.clone());
    running.spawn(sweep(W::TABLE, due, swept, shutdown.clone()));
    running.spawn(measure::<W>(database.clone(), shutdown.clone()));
    let measured = database.clone();
    running.on_scrape(move || measured.record_gauges("main"));
    running.spawn(retain(database.clone(), config.retention, shutdown.clone()));

    let consumer = ConsumerConfig::new(config.broker, W::QUEUE, config.concurrency);
    let connected = consumer.connected.clone();
    let publishing = publisher.clone();
    running.health = health(&database, move || {
        connected.load(Ordering::Acquire) && publishing.is_connected()
    });
    let runner = Runner {
        worker,
        database,
        publisher,
        lease: config.lease,
        shutdown: shutdown.clone(),
    };
    running.spawn(consume(consumer, shutdown, move |message| {
        runner.clone().handle(message)
    }));
}

/// The checks of a process that is ready only while it can use its database and the broker.
pub fn health(
    database: &Database,
    queue_connected: impl Fn() -> bool + Send + Sync + 'static,
) -> Health {
    let database = database.clone();
    Health::default()
        .required("database", move || {
            let database = database.clone();
            async move { database.check().await }
        })
        .required("queue", move || std::future::ready(queue_connected()))
}

/// Keeps the gauges of the backlog up to date until it is cancelled. `outbox_overdue_seconds` grows when no worker does the
/// work.
async fn measure<W: Worker>(database: Database, shutdown: CancellationToken) {
    while !shutdown.is_cancelled() {
        let backlog = database.run(move |connection| W::TABLE.backlog(connection));
        match backlog.await {
            Ok(backlog) => {
                let (outbox, open) = (W::TABLE.0, u32::try_from(backlog.open));
                metrics::gauge!("outbox_open", "outbox" => outbox).set(open.unwrap_or(u32::MAX));
                metrics::gauge!("outbox_overdue_seconds", "outbox" => outbox)
                    .set(backlog.overdue_seconds);
            }
            Err(error) => error.warn("the backlog could not be read"),
        }
        let pause = tokio::time::sleep(MEASURE_INTERVAL);
        shutdown.run_until_cancelled(pause).await;
    }
}

#[derive(Clone)]
struct Runner<W> {
    worker: W,
    database: Database,
    publisher: Publisher,
    lease: Duration,
    shutdown: CancellationToken,
}

impl<W: Worker> Runner<W> {
    async fn handle(self, message: Message) -> Disposition {
        let Ok(id) = W::Id::from_text(&message.body) else {
            return Disposition::Reject;
        };
        let claim = Claim {
            id,
            duration: self.lease,
            ignore_lease: W::CLAIM_REDELIVERED && message.redelivered,
        };
        let worker = self.worker.clone();
        let claim = move |connection: &mut _| worker.claim(connection, claim);
        match self.database.transaction(claim).await {
            Ok(None) => Disposition::Done,
            Ok(Some(job)) => {
                if let Err(error) = self.process(&job).await {
                    // The lease ends, and the sweep publishes the job again.
                    tracing::warn!(table = W::TABLE.0, job.id = %id, error = ?error, "a job's progress could not be written");
                }
                Disposition::Done
            }
            Err(error) => {
                let is_outage = error.is_outage();
                // The pool logs an outage, once.
                if !is_outage {
                    tracing::warn!(table = W::TABLE.0, job.id = %id, error = ?error, "a job could not be claimed");
                }
                let pause = tokio::time::sleep(PAUSE_WITHOUT_DATABASE);
                self.shutdown.run_until_cancelled(pause).await;
                // One requeue bridges a short outage. Some brokers count each, and an outage of minutes would make a dead
                // letter of every message: the sweep publishes the job again when `republish_at` passes.
                if is_outage && message.redelivered {
                    Disposition::Done
                } else {
                    Disposition::Requeue
                }
            }
        }
    }

    /// Does steps of the job until it has ended, waits, or should go to another worker.
    async fn process(&self, job: &W::Job) -> Result<(), Error> {
        let started = Instant::now();
        loop {
            match self.worker.handle(job).await? {
                Outcome::Settled => return Ok(()),
                Outcome::Yield(pause) => return self.release(job, pause).await,
                Outcome::Continue if self.shutdown.is_cancelled() => {
                    return self.release(job, Duration::ZERO).await;
                }
                Outcome::Continue if started.elapsed() > MAX_MESSAGE_TIME => {
                    self.release(job, Duration::ZERO).await?;
                    let context = RequestContext::current_or_fresh();
                    self.publisher
                        .send([Message::new(W::lease(job).id, context)]);
                    return Ok(());
                }
                Outcome::Continue => {}
            }
        }
    }

    async fn release(&self, job: &W::Job, pause: Duration) -> Result<(), Error> {
        let lease = W::lease(job);
        let release = move |connection: &mut _| W::TABLE.release(connection, lease, pause);
        self.database.run(release).await?;
        Ok(())
    }
}
