//! The webhook-worker: sends decisions to webhooks, at least once, never twice at the same time, and
//! never to one receiver at another's expense.
//!
//! - [`ledger`] claims deliveries and writes results; [`attempt`] is one request; [`schedule`] says what
//!   follows from it; [`sweep`] finds what nobody speaks of.
//! - The queue only says that something is due. What is claimed goes by origin: a wake-up of one
//!   delivery lets its origin's oldest ones be claimed, as many as the origin has room for, and a
//!   request that ends lets the next one be claimed. So a million deliveries that wait for a dead host
//!   are rows in an index and nothing else.
//!
//! Invariants: a row is leased for longer than an attempt takes; an attempt is begun only while its
//! lease is young; a result counts only while the lease is still the same; an origin never has more
//! leases than its limit, over all workers; of a delivery that waits, either a sweep will come by
//! (`wake_at`) or it is parked, and the origins of both are looked at in turn, hundreds of them four times
//! a second, whether any message arrives or not.

mod attempt;
mod backlog;
mod ledger;
mod report;
mod results;
mod retention;
mod schedule;
mod store;
mod sweep;

use std::sync::atomic::Ordering;
use std::time::Duration;

use anyhow::Context as _;
use database::Database;
use http_kit::Health;
use messaging::{BrokerSettings, ConsumerConfig, Disposition, Message, Publisher};
use outbound::{GuardedClient, Limits};
use service_runtime::Running;
use tokio::sync::{mpsc, oneshot};
use values::{DeliveryId, FromText as _};

use self::attempt::Sending;
use self::ledger::{Bounds, Ledger, WakeUp};
use self::schedule::RetrySchedule;
use self::sweep::Sweeper;
use crate::WebhookWorkerSettings;
use crate::deliveries::QUEUE;
use crate::webhooks::signing::WebhookSigner;

/// Wake-ups that wait to be looked at; the broker keeps the rest.
const PREFETCH: u16 = 512;
/// What reading the beginning of an answer may add to an attempt.
const READING: Duration = Duration::from_secs(1);

/// Starts the webhook-worker.
///
/// # Errors
/// The database cannot be migrated, a key cannot be read, or TLS cannot be set up.
pub async fn run(settings: WebhookWorkerSettings) -> anyhow::Result<Running> {
    let (sending, bounds) = (sending(&settings)?, bounds(&settings));
    database::migrate(&settings.database, crate::SCHEMA, crate::MIGRATIONS).await?;
    let database = Database::connect_with(&settings.database, store::CONNECTION);
    let mut running = Running::new();
    let shutdown = running.shutdown();
    let (wake_ups, incoming) = mpsc::channel(PREFETCH.into());

    let ledger = Ledger::new(database.clone(), sending, bounds, incoming);
    running.spawn(ledger.run(shutdown.clone()));
    running.spawn(report::watch_backlog(database.clone(), shutdown.clone()));
    let retention = settings.retention;
    running.spawn(retention::run(database.clone(), retention, shutdown));
    running.health = listen(&running, settings.broker, &database, bounds, wake_ups);
    Ok(running)
}

/// Starts what tells the ledger that deliveries are due, and returns what must work.
fn listen(
    running: &Running,
    broker: BrokerSettings,
    database: &Database,
    bounds: Bounds,
    wake_ups: mpsc::Sender<WakeUp>,
) -> Health {
    let shutdown = running.shutdown();
    let (publisher, publishing) = Publisher::new(broker.clone(), QUEUE, shutdown.clone());
    running.spawn(publishing);
    let consumption = ConsumerConfig::new(broker, QUEUE, PREFETCH);
    let connected = consumption.connected.clone();
    let consumer = wake_ups.clone();
    let consuming = messaging::consume(consumption, shutdown.clone(), move |message| {
        look_at(consumer.clone(), message)
    });
    running.spawn(consuming);
    let sweeper = Sweeper {
        database: database.clone(),
        per_origin: bounds.per_origin,
    };
    running.spawn(sweeper.clone().relay(publisher.clone(), shutdown.clone()));
    running.spawn(sweeper.go_without_broker(publisher.clone(), wake_ups, shutdown));

    let database = database.clone();
    let usable = move || {
        let database = database.clone();
        async move { database.is_usable().await }
    };
    let queue = move || {
        let connected = connected.load(Ordering::Acquire) && publisher.is_connected();
        async move { connected }
    };
    Health::default()
        .required("database", usable)
        .required("queue", queue)
}

fn sending(settings: &WebhookWorkerSettings) -> anyhow::Result<Sending> {
    let signer = WebhookSigner::new(&settings.signing)
        .context("WEBHOOK_SIGNING_KEY or WEBHOOK_PREVIOUS_SIGNING_KEY cannot be used")?;
    let limits = Limits {
        timeout: settings.timeout,
        idle_per_host: settings.max_in_flight_per_host as usize,
        ..Limits::default()
    };
    let resolver = settings.resolver.clone();
    Ok(Sending {
        client: GuardedClient::new(settings.policy.clone(), resolver, limits)?,
        signer,
        schedule: RetrySchedule(settings.retry_schedule.clone()),
    })
}

fn bounds(settings: &WebhookWorkerSettings) -> Bounds {
    Bounds {
        in_flight: settings.max_in_flight,
        per_origin: settings.max_in_flight_per_host,
        attempt: settings.timeout + READING,
        lease: settings.timeout + READING + settings.lease_margin,
    }
}

/// A message is acknowledged once its delivery was looked at: from then on the row says what is next,
/// and a slow receiver holds up no message.
async fn look_at(wake_ups: mpsc::Sender<WakeUp>, message: Message) -> Disposition {
    let Ok(delivery) = DeliveryId::from_text(&message.id) else {
        return Disposition::Reject;
    };
    let (answer, answered) = oneshot::channel();
    if wake_ups.send(WakeUp { delivery, answer }).await.is_err() {
        return Disposition::Requeue;
    }
    // The ledger drops what it does not come to any more.
    answered.await.unwrap_or(Disposition::Requeue)
}
