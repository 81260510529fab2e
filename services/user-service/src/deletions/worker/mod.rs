//! The process that carries deletions out.
//!
//! - The job's row is the truth; a message only says that there is something to do. Whoever holds the
//!   job's lease does its first unfinished step and writes the result together with the progress, in
//!   one transaction that fails when the lease has passed on or the job was cancelled.
//! - So a worker that is killed at any instruction loses nothing: the broker delivers its message again
//!   (or its lease runs out and the sweep publishes the job), and another worker repeats at most the
//!   step that was not written down.
//! - While the flow engine works by itself, the job rests in the database: no message, connection or
//!   thread waits for it.

mod perform;
mod store;
mod user_store;
mod work;

use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use auth::{Signer, SigningKey};
use database::Database;
use messaging::{ConsumerConfig, Publisher};
use service_runtime::Running;

use crate::deletions::QUEUE;
use crate::deletions::calls;
use crate::deletions::engine::Engine;
use crate::deletions::people_tasks::PeopleTasks;
use crate::retention::{self, Rule};
use crate::schema::{MIGRATIONS, SCHEMA};
use crate::settings::DeletionWorkerSettings;
use crate::worker::{self, Outbox};
use perform::Hands;
use work::Worker;

/// Jobs that one worker goes through at once.
const JOBS_AT_ONCE: u16 = 8;

/// Starts the deletion worker.
///
/// # Errors
/// The schema cannot be migrated, or the signing key is none.
pub async fn run_deletion_worker(settings: DeletionWorkerSettings) -> anyhow::Result<Running> {
    database::migrate(&settings.database, SCHEMA, MIGRATIONS).await?;
    let mut running = Running::new();
    let shutdown = running.shutdown();
    let database = Database::connect(&settings.database);
    let hands = hands(&settings, &database)?;

    let (publisher, publishing) = Publisher::new(settings.broker.clone(), QUEUE, shutdown.clone());
    running.spawn(publishing);
    let sweep = worker::sweep(
        publisher.clone(),
        database.clone(),
        shutdown.clone(),
        store::due,
    );
    running.spawn(sweep);
    let gauges = worker::measure(database.clone(), Outbox::Deletions, shutdown.clone());
    running.spawn(gauges);

    let rules = vec![Rule::deletions(settings.ticket_retention)];
    running.spawn(retention::retain(database.clone(), rules, shutdown.clone()));

    let consumption = ConsumerConfig::new(settings.broker, QUEUE, JOBS_AT_ONCE);
    running.health = worker::health(&database, &consumption);
    let jobs = Worker {
        hands,
        publisher,
        shutdown: shutdown.clone(),
        lease: settings.lease,
        retry_pause: settings.retry_pause,
        max_attempts: settings.max_attempts,
    };
    running.spawn(messaging::consume(consumption, shutdown, move |message| {
        jobs.clone().handle(message)
    }));
    Ok(running)
}

fn hands(settings: &DeletionWorkerSettings, database: &Database) -> anyhow::Result<Hands> {
    let key = SigningKey::from_pem(&settings.signing_key).context("TOKEN_SIGNING_KEY")?;
    // Only tokens for services are signed here, which have an audience and a lifetime of their own.
    let issuer = settings.issuer.clone();
    let signer = Signer::new(&key, &[], issuer.clone(), issuer, Duration::ZERO);
    let client = calls::client().context("no HTTP client")?;
    let engine = settings.engine.as_ref();
    let service = settings.people_task_service.clone();
    Ok(Hands {
        database: database.clone(),
        engine: engine.map(|engine| Engine::new(client.clone(), engine)),
        people_tasks: PeopleTasks::new(client, service, Arc::new(signer)),
        settle_time: settings.settle_time,
    })
}
