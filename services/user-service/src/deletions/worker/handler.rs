use std::panic::AssertUnwindSafe;
use std::time::Duration;

use audit_log::{Actor, RequestMeta};
use database::{Connection, Database, Error};
use futures_util::FutureExt as _;
use jobs::{Claim, JobTable, Lease, Outcome, RetryPolicy, Worker};
use messaging::Queue;
use serde_json::json;
use values::{DeletionId, Names};

use super::error::StepError;
use super::store::{self, Job, PendingStep};
use crate::audit::AuditAction;
use crate::deletions::steps::{Progress, Step};
use crate::deletions::{JOBS, QUEUE};
use crate::people_tasks::PeopleTasks;
use crate::settings::EngineSettings;

#[derive(Debug, Clone)]
pub(super) struct DeletionWorker {
    pub(super) database: Database,
    pub(super) engine: Option<EngineSettings>,
    pub(super) people_tasks: PeopleTasks,
    pub(super) settle_time: Duration,
    pub(super) lease: Duration,
    pub(super) retry: RetryPolicy,
    /// How long a job may be in progress.
    pub(super) max_age: Duration,
}

impl Worker for DeletionWorker {
    type Id = DeletionId;
    type Job = Job;

    const TABLE: JobTable<DeletionId> = JOBS;
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
        let (job, lease, max_age) = (*job, self.lease, self.max_age);
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
        let pause = self.retry.pause_after(attempts);
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
    use super::*;

    #[tokio::test]
    async fn a_step_that_panics_has_failed_and_can_be_retried() {
        let error = catch_panic(async { panic!("a bug") }).await.unwrap_err();
        assert!(matches!(error, StepError::Panicked) && error.is_retryable());
    }
}
