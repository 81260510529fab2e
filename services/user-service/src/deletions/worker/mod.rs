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
mod store;

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use audit_log::{Actor, RequestMeta};
use auth::{Signer, SigningKey};
use database::{Connection, Database, Error};
use futures_util::FutureExt as _;
use jobs::{
    Claim, JobTable, Lease, Outcome, RetentionRule, Worker, WorkerConfig, growing_pause, jitter,
};
use messaging::Queue;
use serde_json::json;
use server::Running;
use values::{DeletionId, Names};

use crate::audit::AuditAction;
use crate::calls;
use crate::deletions::steps::{Progress, Step};
use crate::deletions::store::find_with_engine;
use crate::deletions::{JOBS, QUEUE};
use crate::people_tasks::PeopleTasks;
use crate::schema::{MIGRATIONS, SCHEMA};
use crate::settings::DeletionWorkerSettings;
use crate::user_changes::UserChangeSender;
use error::StepError;
use store::{Job, PendingStep};

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
    let sender = UserChangeSender::new(database.clone(), people_tasks.clone());
    running.spawn(sender.run(running.shutdown()));
    let worker = DeletionWorker {
        database: database.clone(),
        people_tasks,
        settings: Arc::new(settings.clone()),
    };
    let config = WorkerConfig {
        database,
        broker: settings.broker,
        concurrency: CONCURRENCY,
        lease: settings.lease,
        // A ticket is valid as long as its job's row exists. What has failed can be started again as long as there is something
        // left to delete.
        retention: vec![RetentionRule {
            table: "deletions",
            column: "finished",
            keep: settings.ticket_retention,
            only: "status <> 'failed' OR NOT EXISTS (
                SELECT FROM users WHERE users.id = deletions.user_id AND NOT users.is_active)",
        }],
    };
    jobs::run(&mut running, config, worker);
    Ok(running)
}

/// The pause after this number of failed attempts of a step; `None` when the deletion has failed.
fn pause_after(failures: u32, settings: &DeletionWorkerSettings) -> Option<Duration> {
    let pause = growing_pause(settings.retry_pause, MAX_RETRY_PAUSE, failures.into());
    (failures < settings.max_attempts).then(|| jitter(pause))
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

#[derive(Clone)]
struct DeletionWorker {
    database: Database,
    people_tasks: PeopleTasks,
    settings: Arc<DeletionWorkerSettings>,
}

impl Worker for DeletionWorker {
    type Id = DeletionId;
    type Job = Job;

    const TABLE: JobTable = JOBS;
    const QUEUE: Queue = QUEUE;
    const CLAIM_REDELIVERED: bool = true;

    fn claim(
        &self,
        connection: &mut Connection,
        claim: Claim<DeletionId>,
    ) -> Result<Option<Job>, Error> {
        store::claim(connection, claim)
    }

    fn lease(job: &Job) -> Lease<DeletionId> {
        job.lease
    }

    #[tracing::instrument(skip_all, fields(deletion.id = %job.lease.id, user.id = %job.user))]
    async fn handle(&self, job: &Job) -> Result<Outcome, Error> {
        let (job, lease, max_age) = (*job, self.settings.lease, self.settings.max_age);
        let renew = move |connection: &mut _| store::renew(connection, job, lease, max_age);
        let Some(pending) = self.database.transaction(renew).await? else {
            tracing::info!("the deletion was cancelled or claimed by another worker");
            return Ok(Outcome::Settled);
        };
        let progress = match Step::from_name(&pending.name) {
            Some(step) => catch_panic(self.execute(job, step, pending.position)).await,
            None => Err(StepError::UnknownStep),
        };
        self.record(job, pending, progress).await
    }
}

impl DeletionWorker {
    async fn record(
        &self,
        job: Job,
        pending: PendingStep,
        progress: Result<Progress, StepError>,
    ) -> Result<Outcome, Error> {
        match progress {
            Ok(Progress::Done) => {
                let position = pending.position;
                let finish =
                    move |connection: &mut _| store::finish_step(connection, job, position, false);
                let recorded = self.database.transaction(finish).await?;
                tracing::info!(step = pending.name, recorded, "step done");
                count(&pending, "done");
                Ok(if recorded {
                    Outcome::Continue
                } else {
                    Outcome::Settled
                })
            }
            Ok(Progress::Completed) => {
                tracing::info!("user deleted");
                count(&pending, "done");
                metrics::counter!("deletions_total", "outcome" => "completed").increment(1);
                Ok(Outcome::Settled)
            }
            Ok(Progress::Lost) => Ok(Outcome::Settled),
            Ok(Progress::Waiting(_)) if pending.overdue => {
                self.record_failure(job, pending, &StepError::Overdue).await
            }
            Ok(Progress::More) => {
                count(&pending, "part");
                self.forget_failures(job, &pending).await?;
                Ok(Outcome::Continue)
            }
            Ok(Progress::Waiting(pause)) => {
                let (step, pause_s) = (&pending.name, pause.as_secs());
                tracing::info!(step, pause_s, "step still in progress elsewhere");
                count(&pending, "working");
                self.forget_failures(job, &pending).await?;
                Ok(Outcome::Yield(pause))
            }
            Err(error) => self.record_failure(job, pending, &error).await,
        }
    }

    /// Only failures in a row count, so that an outage does not add to an earlier one.
    async fn forget_failures(&self, job: Job, pending: &PendingStep) -> Result<(), Error> {
        if pending.attempts == 0 {
            return Ok(());
        }
        let position = pending.position;
        let forget = move |connection: &mut _| store::forget_failures(connection, job, position);
        self.database.run(forget).await
    }

    async fn record_failure(
        &self,
        job: Job,
        pending: PendingStep,
        error: &StepError,
    ) -> Result<Outcome, Error> {
        let attempts = u32::try_from(pending.attempts).unwrap_or(0) + 1;
        tracing::warn!(step = pending.name, attempts, error = ?error, "step failed");
        count(&pending, "failed");
        let pause = pause_after(attempts, &self.settings);
        match pause.filter(|_| error.is_retryable() && !pending.overdue) {
            Some(pause) => {
                let reason = error.to_string();
                let retry = move |connection: &mut Connection| {
                    // Nothing is written if the claim was lost.
                    if JOBS.release(connection, job.lease, pause)? {
                        store::record_failure(connection, job, &pending, &reason)?;
                    }
                    Ok::<_, Error>(())
                };
                self.database.transaction(retry).await?;
            }
            None => self.fail(job, pending, error, attempts).await?,
        }
        Ok(Outcome::Settled)
    }

    async fn fail(
        &self,
        job: Job,
        pending: PendingStep,
        error: &StepError,
        attempts: u32,
    ) -> Result<(), Error> {
        let (reason, failure) = (error.to_string(), error.problem(&pending.name, attempts));
        let entry =
            AuditAction::DeletionFailed.entry(Actor::Service, job.user, RequestMeta::internal());
        let entry = entry.detail(json!({ "step": pending.name }));
        let fail = move |connection: &mut _| {
            store::fail(connection, job, &pending, &reason, failure, &entry)
        };
        if self.database.transaction(fail).await? {
            tracing::error!("the deletion has failed");
            metrics::counter!("deletions_total", "outcome" => "failed").increment(1);
        }
        Ok(())
    }
}

/// A panic counts as a failed attempt, so that a deletion that causes panics ends as others do.
async fn catch_panic(
    step: impl Future<Output = Result<Progress, StepError>>,
) -> Result<Progress, StepError> {
    let done = AssertUnwindSafe(step).catch_unwind().await;
    done.unwrap_or(Err(StepError::Panicked))
}

fn count(pending: &PendingStep, outcome: &'static str) {
    let step = Step::from_name(&pending.name).map_or("unknown", Names::name);
    metrics::counter!("deletion_steps_total", "step" => step, "outcome" => outcome).increment(1);
}

#[cfg(test)]
mod tests {
    use app_config::{Reader, Settings as _};

    use super::*;

    fn settings(max_attempts: &str) -> DeletionWorkerSettings {
        let key = testkit::ed25519_pem();
        let pairs = [
            ("DATABASE_URL", "postgres://localhost/x"),
            ("AMQP_URL", "amqp://localhost"),
            ("PEOPLE_TASK_SERVICE_URL", "http://localhost"),
            ("TOKEN_SIGNING_KEY", key.expose()),
            ("DELETE_MAX_ATTEMPTS", max_attempts),
        ];
        let mut reader = Reader::from_pairs(pairs).unwrap();
        DeletionWorkerSettings::read(&mut reader).unwrap()
    }

    #[test]
    fn the_default_settings_survive_an_outage_of_a_day() {
        let settings = settings("");
        let pauses = (1..).map_while(|failures| pause_after(failures, &settings));
        assert!(pauses.sum::<Duration>() > Duration::from_secs(24 * 3_600));
    }

    #[test]
    fn pauses_double_up_to_the_longest() {
        let settings = settings("5000");
        for (failures, expected) in [(0, 1), (1, 1), (2, 2), (5, 16), (10, 300), (4_000, 300)] {
            let pause = pause_after(failures, &settings).unwrap().as_secs_f64();
            let expected = f64::from(expected);
            let range = expected * 0.8..=expected * 1.2;
            assert!(range.contains(&pause), "{failures}: {pause}");
        }
        assert_eq!(pause_after(5_000, &settings), None);
    }

    #[tokio::test]
    async fn a_step_that_panics_has_failed_and_can_be_retried() {
        let error = catch_panic(async { panic!("a bug") }).await.unwrap_err();
        assert!(matches!(error, StepError::Panicked) && error.is_retryable());
    }
}
