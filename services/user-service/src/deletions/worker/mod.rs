//! The process that deletes users. It also tells the people-task service of changes of users (`user_changes`).
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

use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use auth::{Signer, SigningKey};
use database::Database;
use jobs::{RetentionRule, RetryPolicy, WorkerConfig};
use server::Running;

use crate::calls;
use crate::deletions::store::find_with_engine;
use crate::people_tasks::PeopleTasks;
use crate::schema::{MIGRATIONS, SCHEMA};
use crate::settings::DeletionWorkerSettings;
use crate::user_changes::UserChangeSender;
use handler::DeletionWorker;

/// Jobs that one worker processes at once.
const CONCURRENCY: u16 = 8;
const MAX_RETRY_PAUSE: Duration = Duration::from_secs(300);

/// Starts the deletion worker.
///
/// # Errors
/// The schema cannot be migrated, the signing key is invalid, or only one of this process and the user-service has a
/// flow engine.
pub async fn run_deletion_worker(settings: DeletionWorkerSettings) -> anyhow::Result<Running> {
    database::prepare_schema(&settings.database, SCHEMA, MIGRATIONS).await?;
    let mut running = Running::new();
    let database = Database::connect(&settings.database);
    check_engine(&database, settings.engine.is_some()).await?;
    let people_tasks = PeopleTasks {
        client: calls::client().context("no HTTP client")?,
        base: settings.people_task_service.clone(),
        signer: signer(&settings)?,
    };
    let sender = UserChangeSender::new(database.clone(), people_tasks.clone(), settings.lease);
    running.spawn(sender.run(running.shutdown()));
    let worker = DeletionWorker {
        database: database.clone(),
        engine: settings.engine.clone(),
        people_tasks,
        settle_time: settings.settle_time,
        lease: settings.lease,
        retry: retry_policy(&settings),
        max_age: settings.max_age,
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

fn retry_policy(settings: &DeletionWorkerSettings) -> RetryPolicy {
    RetryPolicy::Exponential {
        first: settings.retry_pause,
        max: MAX_RETRY_PAUSE,
        max_attempts: settings.max_attempts,
    }
}

/// Refuses to start if the user-service adds no steps for the engine that this process has, because deletions would
/// leave the users' data there, or the reverse. Nothing is known before the user-service was started once.
async fn check_engine(database: &Database, with_engine: bool) -> anyhow::Result<()> {
    let of_service = database.run(find_with_engine).await?;
    let (with, without) = match of_service {
        Some(true) if !with_engine => ("user-service", "deletion-worker"),
        Some(false) if with_engine => ("deletion-worker", "user-service"),
        _ => return Ok(()),
    };
    anyhow::bail!(
        "FLOW_ENGINE_URL is set for the {with} but not for the {without}: give both the same value, and start the user-service first"
    )
}

/// A signer that only makes tokens for services, which have their own audience and lifetime.
fn signer(settings: &DeletionWorkerSettings) -> anyhow::Result<Arc<Signer>> {
    let key = SigningKey::from_pem(&settings.signing_key).context("TOKEN_SIGNING_KEY")?;
    let issuer = settings.issuer.clone();
    let signer = Signer::new(&key, &[], issuer.clone(), issuer, Duration::ZERO);
    Ok(Arc::new(signer))
}

#[cfg(test)]
mod tests {
    use app_config::{Reader, Settings as _};

    use super::*;

    #[test]
    fn the_default_settings_survive_an_outage_of_a_day() {
        let required = [
            ("DATABASE_URL", "postgres://localhost/x"),
            ("AMQP_URL", "amqp://localhost"),
            ("PEOPLE_TASK_SERVICE_URL", "http://localhost"),
            ("TOKEN_SIGNING_KEY", "x"),
        ];
        let mut reader = Reader::from_pairs(required).unwrap();
        let settings = DeletionWorkerSettings::read(&mut reader).unwrap();
        let retry = retry_policy(&settings);
        let pauses = (1..).map_while(|failures| retry.pause_after(failures));
        assert!(pauses.sum::<Duration>() > Duration::from_secs(24 * 3_600));
    }
}
