//! The webhook-worker: sends decisions to webhooks, at least once, and without letting one receiver delay another.
//!
//! - [`dispatcher`] decides what is started next. It knows of each [host](hosts) which deliveries are due, how many
//!   requests it has, and whether it [responds](circuit); it waits neither for the database nor for a receiver.
//! - [`claims`] claims deliveries ahead, [`attempt`] makes one request, [`schedule`] decides what follows, and
//!   [`recorder`] records results in batches.
//! - [`membership`] divides the places of each host among the workers, and releases the claims of workers that ended.
//!
//! Deliveries become known by messages, which name them and their hosts, and by a scan of the hosts, which finds
//! retries and whatever a lost message named. A million deliveries to a host that does not respond are rows in an index
//! and nothing else.
//!
//! Invariants: a delivery is sent by the worker that has claimed it; a result counts only under its claim; a worker
//! starts nothing while others may take it for dead; over all workers, a host never has more requests than its limit.

mod attempt;
mod backlog_store;
mod circuit;
mod claims;
mod claims_store;
mod dispatcher;
mod hosts;
mod membership;
mod membership_store;
mod message;
mod recorder;
mod report;
mod results_store;
mod retention;
mod retention_store;
mod schedule;

use std::sync::Arc;
use std::sync::atomic::Ordering;

use anyhow::Context as _;
use database::Database;
use messaging::{BrokerSettings, ConsumerConfig};
use outbound::{GuardedClient, Limits, SystemResolver};
use service_runtime::Running;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use self::attempt::Sender;
use self::claims::Claims;
use self::dispatcher::{Dispatcher, Incoming};
use self::membership::Membership;
use self::message::handle_message;
use self::recorder::Recorder;
use self::schedule::RetrySchedule;
use crate::deliveries::{DueDelivery, QUEUE};
use crate::schema::{MIGRATIONS, SCHEMA};
use crate::settings::WebhookWorkerSettings;
use crate::signing::WebhookSigner;

/// How many messages the worker handles at a time. The broker keeps the rest.
const PREFETCH: u16 = 512;

/// Starts the webhook-worker.
///
/// # Errors
/// The database cannot be migrated, a key is invalid, or TLS cannot be set up.
pub async fn run(settings: WebhookWorkerSettings) -> anyhow::Result<Running> {
    let sender = sender(&settings)?;
    database::migrate(&settings.database, SCHEMA, MIGRATIONS).await?;
    let database = Database::connect_with(&settings.database, claims_store::POOL_OPTIONS);
    let mut running = Running::new();
    let shutdown = running.shutdown();
    let (due, incoming) = mpsc::channel(PREFETCH.into());
    running.spawn(report::watch_backlog(database.clone(), shutdown.clone()));
    running.spawn(retention::maintain(
        database.clone(),
        settings.retention,
        shutdown.clone(),
    ));
    start_consumer(&mut running, settings.broker.clone(), &database, due);
    running.spawn(deliver(settings, database, sender, incoming, shutdown));
    Ok(running)
}

/// Delivers until it is cancelled, and then finishes in order: the attempts, their results, the membership.
async fn deliver(
    settings: WebhookWorkerSettings,
    database: Database,
    sender: Sender,
    incoming: Incoming,
    shutdown: CancellationToken,
) {
    let (membership, member, used) = Membership::new(
        database.clone(),
        settings.max_in_flight_per_host,
        settings.silence,
    );
    let (recorder, ends) = Recorder::new(database.clone());
    let leaving = CancellationToken::new();
    let beating = tokio::spawn(membership.run(leaving.clone()));
    let recording = tokio::spawn(recorder.run());
    let dispatcher = Dispatcher {
        sender: Arc::new(sender),
        claims: Claims::new(database),
        ends,
        incoming,
        member,
        used,
        max_in_flight: settings.max_in_flight,
        suspects_after: settings.suspects_after,
    };
    dispatcher.run(shutdown).await;
    let recorded = recording.await;
    leaving.cancel();
    if recorded.and(beating.await).is_err() {
        tracing::error!("a part of the worker panicked; another worker will release its claims");
    }
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
    running.spawn(messaging::consume(
        config,
        running.shutdown(),
        move |message| handle_message(due.clone(), message),
    ));
    running.health = jobs::health(database, move || connected.load(Ordering::Acquire));
}

fn sender(settings: &WebhookWorkerSettings) -> anyhow::Result<Sender> {
    let signer = WebhookSigner::new(&settings.signing)
        .context("WEBHOOK_SIGNING_KEY or WEBHOOK_PREVIOUS_SIGNING_KEY is not usable")?;
    let limits = Limits {
        timeout: settings.timeout,
        idle_per_host: settings.max_in_flight_per_host as usize,
        ..Limits::default()
    };
    let resolver = match &settings.resolver {
        Some(resolver) => Arc::clone(resolver),
        None => Arc::new(SystemResolver::from_system()?),
    };
    Ok(Sender {
        client: GuardedClient::new(settings.policy.clone(), resolver, limits)?,
        signer,
        schedule: RetrySchedule(settings.retry_schedule.clone()),
    })
}
