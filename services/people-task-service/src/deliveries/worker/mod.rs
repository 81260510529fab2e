//! The webhook-worker: sends decisions to webhooks, at least once, never twice at the same time, and without
//! letting one receiver delay another.
//!
//! - [`dispatcher`] claims deliveries and records results. [`attempt`] makes one request, and [`schedule`]
//!   decides what follows. [`sweep`] finds due rows that have no message in flight.
//! - A message only says that something is due. Claims are made per host of the webhooks' URLs (see
//!   [`host_of`](crate::deliveries::host_of)): a message for one delivery lets its host's oldest deliveries be
//!   claimed, as many as the host's limit allows, and a finished request lets the next one be claimed. So a million deliveries to a dead host are rows in an index and nothing else.
//!
//! Invariants: a lease is longer than an attempt; an attempt starts only while its lease is fresh; a result
//! counts only under the lease of its attempt; over all workers, a host never has more leases than its
//! limit; a waiting delivery is either republished by a sweep (`republish_at`) or parked, and the hosts of
//! both are scanned in turn, hundreds of them four times a second, with or without messages.

mod attempt;
mod backlog_store;
mod dispatcher;
mod message;
mod report;
mod results_store;
mod schedule;
mod store;
mod sweep;

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use anyhow::Context as _;
use database::Database;
use jobs::RetentionRule;
use messaging::{BrokerSettings, ConsumerConfig, Publisher};
use outbound::{GuardedClient, Limits, SystemResolver};
use service_runtime::Running;
use tokio::sync::mpsc;

use self::attempt::Sender;
use self::dispatcher::{DispatchLimits, Dispatcher};
use self::message::{DueDelivery, handle_message};
use self::schedule::RetrySchedule;
use self::sweep::Sweeper;
use crate::deliveries::QUEUE;
use crate::schema::{MIGRATIONS, SCHEMA};
use crate::settings::WebhookWorkerSettings;
use crate::signing::WebhookSigner;

/// How many messages the worker handles at a time. The broker keeps the rest.
const PREFETCH: u16 = 512;
/// How much reading the start of a response may add to an attempt.
const READ_TIMEOUT: Duration = Duration::from_secs(1);

/// Starts the webhook-worker.
///
/// # Errors
/// The database cannot be migrated, a key is invalid, or TLS cannot be set up.
pub async fn run(settings: WebhookWorkerSettings) -> anyhow::Result<Running> {
    let (sender, limits) = (sender(&settings)?, limits(&settings));
    database::migrate(&settings.database, SCHEMA, MIGRATIONS).await?;
    let database = Database::connect_with(&settings.database, store::POOL_OPTIONS);
    let mut running = Running::new();
    let shutdown = running.shutdown();
    let (due, incoming) = mpsc::channel(PREFETCH.into());

    let dispatcher = Dispatcher::new(database.clone(), sender, limits, incoming);
    running.spawn(dispatcher.run(shutdown.clone()));
    running.spawn(report::watch_backlog(database.clone(), shutdown.clone()));
    let finished = RetentionRule {
        table: "deliveries",
        column: "finished",
        keep: settings.retention,
    };
    running.spawn(jobs::retain(database.clone(), vec![finished], shutdown));
    start_messaging(&mut running, settings.broker, &database, limits, due);
    Ok(running)
}

/// Starts the tasks that report due deliveries to the dispatcher, and sets the readiness checks.
fn start_messaging(
    running: &mut Running,
    broker: BrokerSettings,
    database: &Database,
    limits: DispatchLimits,
    due: mpsc::Sender<DueDelivery>,
) {
    let shutdown = running.shutdown();
    let (publisher, task) = Publisher::new(broker.clone(), QUEUE, shutdown.clone());
    running.spawn(task);
    let config = ConsumerConfig::new(broker, QUEUE, PREFETCH);
    let connected = config.connected.clone();
    let consumed = due.clone();
    running.spawn(messaging::consume(
        config,
        shutdown.clone(),
        move |message| handle_message(consumed.clone(), message),
    ));
    let sweeper = Sweeper {
        database: database.clone(),
        per_host: limits.per_host,
    };
    running.spawn(sweeper.clone().relay(publisher.clone(), shutdown.clone()));
    running.spawn(sweeper.run_without_broker(publisher.clone(), due, shutdown));

    running.health = jobs::health(database, move || {
        connected.load(Ordering::Acquire) && publisher.is_connected()
    });
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

fn limits(settings: &WebhookWorkerSettings) -> DispatchLimits {
    DispatchLimits {
        in_flight: settings.max_in_flight,
        per_host: settings.max_in_flight_per_host,
        attempt: settings.timeout + READ_TIMEOUT,
        lease: settings.timeout + READ_TIMEOUT + settings.lease_margin,
    }
}
