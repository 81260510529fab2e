//! The process that deletes users.
//!
//! - A job is a row; a message only says that the row is due. The worker that holds the claim does the
//!   first unfinished step and records the result in one transaction, which fails if the claim was lost
//!   or the job was cancelled.
//! - A worker may be killed at any instruction: the broker redelivers its message (or the lease ends and
//!   the sweep publishes the job), and another worker repeats at most the step that was not recorded.
//! - While the flow engine works on a step by itself, the job is only a row: no message, connection or
//!   thread waits for it.

mod error;
mod executor;
mod handler;
mod store;
mod user_data;

use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use auth::{Signer, SigningKey};
use database::Database;
use jobs::{RetentionRule, RetryPolicy, WorkerConfig};
use service_runtime::Running;

use crate::deletions::calls;
use crate::deletions::engine::Engine;
use crate::deletions::people_tasks::PeopleTasks;
use crate::schema::{MIGRATIONS, SCHEMA};
use crate::settings::DeletionWorkerSettings;
use executor::StepExecutor;
use handler::DeletionWorker;

/// Jobs that one worker processes at once.
const CONCURRENCY: u16 = 8;
const MAX_RETRY_PAUSE: Duration = Duration::from_secs(300);

/// Starts the deletion worker.
///
/// # Errors
/// The schema cannot be migrated, or the signing key is invalid.
pub async fn run_deletion_worker(settings: DeletionWorkerSettings) -> anyhow::Result<Running> {
    database::migrate(&settings.database, SCHEMA, MIGRATIONS).await?;
    let mut running = Running::new();
    let database = Database::connect(&settings.database);
    let worker = DeletionWorker {
        executor: executor(&settings, &database)?,
        lease: settings.lease,
        retry: RetryPolicy::Exponential {
            first: settings.retry_pause,
            max: MAX_RETRY_PAUSE,
            max_attempts: settings.max_attempts,
        },
    };
    let config = WorkerConfig {
        database,
        broker: settings.broker,
        concurrency: CONCURRENCY,
        lease: settings.lease,
        // A ticket is valid as long as its job's row exists.
        retention: vec![RetentionRule {
            table: "deletions",
            column: "finished",
            keep: settings.ticket_retention,
        }],
    };
    jobs::run(&mut running, config, worker);
    Ok(running)
}

fn executor(
    settings: &DeletionWorkerSettings,
    database: &Database,
) -> anyhow::Result<StepExecutor> {
    let key = SigningKey::from_pem(&settings.signing_key).context("TOKEN_SIGNING_KEY")?;
    // This signer only makes tokens for services, which have their own audience and lifetime.
    let issuer = settings.issuer.clone();
    let signer = Signer::new(&key, &[], issuer.clone(), issuer, Duration::ZERO);
    let client = calls::client().context("no HTTP client")?;
    let engine = settings.engine.as_ref();
    let service = settings.people_task_service.clone();
    Ok(StepExecutor {
        database: database.clone(),
        engine: engine.map(|engine| Engine::new(client.clone(), engine)),
        people_tasks: PeopleTasks::new(client, service, Arc::new(signer)),
        settle_time: settings.settle_time,
    })
}
