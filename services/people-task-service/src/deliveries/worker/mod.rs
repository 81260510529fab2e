//! The webhook-worker: sends decisions to webhooks, at least once, and without letting one receiver delay another.
//!
//! [`dispatcher`] decides what is started next, and waits neither for the database nor for a receiver: [`loads`], [`attempt`],
//! [`recorder`] and [`ownership`] work beside it.
//!
//! [Why deliveries wait in lanes, and workers own hosts](../../../../../docs/decisions/workers-own-hosts.md).
//!
//! Invariants: only the owner of a host sends its deliveries; a result counts only for the version of the row that was
//! sent, and a failure only if its worker was not taken for dead; a worker starts nothing while others may take it for
//! dead; what waited in memory for more than a second is read again before it is sent; a host never has more requests
//! than its limit, except those that are tried because they may end workers, calls that try webhooks, and those that a
//! worker which was cut off from the database has not ended yet.

mod attempt;
mod call;
mod dispatcher;
mod due_store;
mod lane;
mod loads;
mod ownership;
mod ownership_store;
mod periodic;
mod periodic_store;
mod places;
mod recorder;
mod results_store;
mod schedule;
mod shards;
mod waiting_lanes;

use std::sync::Arc;
use std::sync::atomic::Ordering;

use anyhow::Context as _;
use database::{Database, DatabaseSettings, StatementLimits};
use fairness::{Remainder, Shares};
use messaging::{BrokerSettings, ConsumerConfig, Disposition, Message};
use outbound::{AddressPolicy, GuardedClient, Resolve, SystemResolver};
use server::Running;
use tokio::sync::mpsc;
use tokio::task::JoinError;
use tokio_util::sync::CancellationToken;

use self::call::Sender;
use self::dispatcher::{Dispatcher, Incoming};
use self::periodic::{
    maintain_partitions, make_test_calls, reseal_headers, watch_backlog, watch_due_dates,
};
use self::schedule::RetrySchedule;
use crate::deliveries::lane_names::parse_due_message;
use crate::deliveries::{DueDelivery, QUEUE};
use crate::schema::{MIGRATIONS, SCHEMA};
use crate::settings::WebhookWorkerSettings;
use crate::webhook_signature::WebhookSigner;

/// How many messages the worker handles at a time. The broker keeps the rest.
const PREFETCH: u16 = 512;

/// Starts the webhook-worker.
///
/// # Errors
/// The database cannot be migrated, a key is invalid, or TLS cannot be set up.
pub async fn run(settings: WebhookWorkerSettings) -> anyhow::Result<Running> {
    let sender = Arc::new(sender(&settings)?);
    database::prepare_schema(&settings.database, SCHEMA, MIGRATIONS).await?;
    let (beats, database) = connect(&settings);
    let mut running = Running::new();
    let shutdown = running.shutdown();
    let (due, incoming) = mpsc::channel(PREFETCH.into());
    let (main, alone) = (database.clone(), beats.clone());
    running.on_scrape(move || main.record_gauges("main"));
    running.on_scrape(move || alone.record_gauges("beats"));
    running.spawn(watch_backlog(database.clone(), shutdown.clone()));
    let (keep, keys) = (settings.retention, settings.header_keys.clone());
    let partitions = maintain_partitions(database.clone(), keep, shutdown.clone());
    running.spawn(partitions);
    running.spawn(reseal_headers(database.clone(), keys, shutdown.clone()));
    let due_dates = watch_due_dates(database.clone(), due.clone(), shutdown.clone());
    running.spawn(due_dates);
    let test_calls = make_test_calls(database.clone(), Arc::clone(&sender), shutdown.clone());
    running.spawn(test_calls);
    start_consumer(&mut running, settings.broker.clone(), &database, due);
    let delivery = deliver(settings, beats, database, sender, incoming, shutdown);
    running.spawn(delivery);
    Ok(running)
}

/// The pools of the worker, which together have the connections that the settings allow, and two at least: one for beats,
/// which wait for nothing else and give up before this worker is taken for dead, and one for everything else.
fn connect(settings: &WebhookWorkerSettings) -> (Database, Database) {
    let connect = |pool_size, timeout, limits| {
        let settings = DatabaseSettings {
            pool_size,
            timeout,
            ..settings.database.clone()
        };
        Database::connect_with(&settings, limits, due_store::ON_CONNECT)
    };
    let in_time = settings.silence / 2;
    let limits = StatementLimits {
        statement: Some(in_time),
        lock: in_time,
    };
    let others = settings.database.pool_size.saturating_sub(1).max(1);
    let timeout = settings.database.timeout;
    (
        connect(1, in_time, limits),
        connect(others, timeout, StatementLimits::WORKER),
    )
}

/// Delivers until it is cancelled, and then finishes in order: the attempts, their results, the ownership.
async fn deliver(
    settings: WebhookWorkerSettings,
    beats: Database,
    database: Database,
    sender: Arc<Sender>,
    incoming: Incoming,
    shutdown: CancellationToken,
) {
    let (ends, unrecorded) = mpsc::unbounded_channel();
    let (recorded, settled) = mpsc::unbounded_channel();
    let results = (ends, settled);
    let (dispatcher, ownership) =
        Dispatcher::new(&settings, beats, &database, sender, incoming, results);
    let leaving = CancellationToken::new();
    let mut beating = tokio::spawn(ownership.run(leaving.clone(), database.clone()));
    let mut recording = tokio::spawn(recorder::run(database, unrecorded, recorded));
    tokio::select! {
        biased;
        // Neither of them ends before the dispatcher unless it panics.
        ended = &mut beating => return pass_on_panic(ended).unwrap_or_default(),
        ended = &mut recording => return pass_on_panic(ended).unwrap_or_default(),
        () = dispatcher.run(shutdown) => {}
    }
    pass_on_panic(recording.await);
    leaving.cancel();
    pass_on_panic(beating.await);
}

/// Starts the consumer of messages, and sets the readiness checks.
fn start_consumer(
    running: &mut Running,
    broker: BrokerSettings,
    database: &Database,
    due: mpsc::Sender<Vec<DueDelivery>>,
) {
    let config = ConsumerConfig::new(broker, QUEUE, PREFETCH);
    let connected = config.connected.clone();
    let handle = move |message| handle_message(due.clone(), message);
    running.spawn(messaging::consume(config, running.shutdown(), handle));
    running.health = jobs::health(database, move || connected.load(Ordering::Acquire));
}

/// Passes a message to the dispatcher. The rows do not depend on it, so it is done when it is received.
async fn handle_message(due: mpsc::Sender<Vec<DueDelivery>>, message: Message) -> Disposition {
    let Some(deliveries) = parse_due_message(&message.body) else {
        return Disposition::Reject;
    };
    let sent = due.send(deliveries).await;
    sent.map_or(Disposition::Requeue, |()| Disposition::Done)
}

fn sender(settings: &WebhookWorkerSettings) -> anyhow::Result<Sender> {
    let signer = WebhookSigner::new(&settings.signing)
        .context("WEBHOOK_SIGNING_KEY or WEBHOOK_PREVIOUS_SIGNING_KEY is not usable")?;
    let (timeout, idle) = (settings.timeout, settings.max_in_flight_per_host as usize);
    let resolver: Arc<dyn Resolve> = match &settings.resolver {
        Some(resolver) => Arc::clone(resolver),
        None => Arc::new(SystemResolver::from_system()?),
    };
    let public = AddressPolicy::default();
    Ok(Sender {
        public_client: GuardedClient::new(public, Arc::clone(&resolver), timeout, idle)?,
        client: GuardedClient::new(settings.policy.clone(), resolver, timeout, idle)?,
        engine_origins: settings.engine_origins.clone(),
        header_keys: settings.header_keys.clone(),
        signer,
        bodies: Shares::new(Remainder(settings.max_body_bytes)),
        schedule: RetrySchedule(settings.retry_schedule.0.clone()),
    })
}

/// What a part of the worker returned. Its panic stops the process, and another worker takes the shards.
fn pass_on_panic<T>(ended: Result<T, JoinError>) -> Option<T> {
    match ended.map_err(JoinError::try_into_panic) {
        Ok(result) => Some(result),
        Err(Ok(panic)) => std::panic::resume_unwind(panic),
        // Nothing cancels it.
        Err(Err(_)) => None,
    }
}
