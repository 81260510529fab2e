//! The webhook-worker: sends decisions to webhooks, at least once, never twice at the same time, and
//! never to one receiver at another's expense.
//!
//! - [`ledger`] claims deliveries and writes results; it is the only writer here.
//! - [`attempt`] is one request; [`schedule`] says what follows from it.
//! - The relay and the queue only say that something is due. What is claimed goes by origin: a wake-up
//!   of one delivery lets its origin's oldest ones be claimed, as many as the origin has room for, and
//!   a request that ends lets the next one be claimed. So a million deliveries that wait for a dead host
//!   are rows in an index and nothing else.
//!
//! Invariants: a row is leased for longer than an attempt takes; an attempt is begun only while its
//! lease is young; a result counts only while the lease is still the same; an origin never has more
//! leases than its limit, over all workers; of a delivery that waits, either a sweep will come by
//! (`wake_at`) or it is parked, and parked ones are looked at by origin four times a second.

mod attempt;
mod ledger;
mod report;
mod retention;
mod schedule;
mod store;

use std::sync::atomic::Ordering;
use std::time::Duration;

use anyhow::Context as _;
use database::Database;
use futures_util::future::join_all;
use messaging::{Consumption, Disposition, Message, Publisher, Queue, RelaySettings};
use outbound::{GuardedClient, Limits};
use process::Running;
use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::CancellationToken;
use values::{DeliveryId, FromText as _};

use self::attempt::Sending;
use self::ledger::{Bounds, Ledger, WakeUp};
use self::schedule::RetrySchedule;
use crate::WebhookWorkerSettings;
use crate::webhooks::signing::WebhookSigner;

/// Wake-ups that wait to be looked at; the broker keeps the rest.
const PREFETCH: u16 = 512;
const RELAY: RelaySettings = RelaySettings {
    pause: Duration::from_millis(300),
    batch: 500,
};
/// A delivery whose message was sent is not swept again before this.
const QUIET: Duration = Duration::from_secs(10);
/// What reading the beginning of an answer may add to an attempt.
const READING: Duration = Duration::from_secs(1);

/// Starts the webhook-worker.
///
/// # Errors
/// The database cannot be migrated, a key cannot be read, or TLS cannot be set up.
pub async fn run(settings: WebhookWorkerSettings) -> anyhow::Result<Running> {
    let sending = sending(&settings)?;
    database::migrate(&settings.database, crate::SCHEMA, crate::MIGRATIONS).await?;
    let database = Database::connect(&settings.database);
    let mut running = Running::new();
    let shutdown = running.shutdown();
    let (wake_ups, incoming) = mpsc::channel(PREFETCH.into());

    let bounds = bounds(&settings);
    let ledger = Ledger::new(database.clone(), sending, bounds, incoming);
    running.spawn(ledger.run(shutdown.clone()));

    let queue = Queue::WEBHOOK_DELIVERIES;
    let (publisher, publishing) = Publisher::new(settings.broker.clone(), queue, shutdown.clone());
    running.spawn(publishing);
    let consumption = Consumption::new(settings.broker.clone(), queue, PREFETCH);
    let connected = consumption.connected.clone();
    let consumer = wake_ups.clone();
    running.spawn(messaging::consume(
        consumption,
        shutdown.clone(),
        move |message| look_at(consumer.clone(), message),
    ));
    running.spawn(sweep(publisher.clone(), database.clone(), shutdown.clone()));
    running.spawn(go_without_broker(
        publisher.clone(),
        database.clone(),
        wake_ups,
        shutdown.clone(),
    ));
    running.spawn(report::watch_backlog(database.clone(), shutdown.clone()));
    running.spawn(retention::run(
        database.clone(),
        settings.retention,
        shutdown,
    ));

    running.health = running
        .health
        .requires("database", move || {
            let database = database.clone();
            async move { database.is_usable().await }
        })
        .requires("queue", move || {
            let connected = connected.load(Ordering::Acquire) && publisher.is_connected();
            async move { connected }
        });
    Ok(running)
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
        return Disposition::Again;
    }
    // The ledger drops what it does not come to any more.
    answered.await.unwrap_or(Disposition::Again)
}

async fn sweep(publisher: Publisher, database: Database, shutdown: CancellationToken) {
    messaging::relay(publisher, RELAY, shutdown, |limit| due(&database, limit)).await;
}

async fn due(database: &Database, limit: i64) -> Result<Vec<Message>, database::Error> {
    let sweep = move |connection: &mut _| Ok(store::sweep(connection, limit, QUIET)?);
    database.run(sweep).await
}

/// While the broker is away, hands what is due to the ledger directly: the broker makes deliveries
/// prompt, but none depends on it.
async fn go_without_broker(
    publisher: Publisher,
    database: Database,
    wake_ups: mpsc::Sender<WakeUp>,
    shutdown: CancellationToken,
) {
    while !shutdown.is_cancelled() {
        tokio::select! {
            () = tokio::time::sleep(Duration::from_secs(1)) => {}
            () = shutdown.cancelled() => return,
        }
        if publisher.is_connected() {
            continue;
        }
        let messages = due(&database, RELAY.batch).await.unwrap_or_default();
        join_all(
            messages
                .into_iter()
                .map(|message| look_at(wake_ups.clone(), message)),
        )
        .await;
    }
}
