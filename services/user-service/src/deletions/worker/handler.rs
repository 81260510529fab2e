use std::time::Duration;

use audit_log::{Actor, RequestMeta};
use database::{Connection, Error};
use jobs::{Claim, JobTable, Lease, Outcome, RetryPolicy, Worker};
use messaging::Queue;
use serde_json::json;
use values::{DeletionId, Names};

use super::error::StepError;
use super::executor::{Progress, StepExecutor};
use super::store::{self, Job, NextStep, PendingStep};
use crate::audit::AuditAction;
use crate::deletions::steps::Step;
use crate::deletions::{JOBS, QUEUE};

/// Does the steps of deletions one after the other.
#[derive(Debug, Clone)]
pub(super) struct DeletionWorker {
    pub(super) executor: StepExecutor,
    pub(super) lease: Duration,
    pub(super) retry: RetryPolicy,
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
        let (job, lease) = (*job, self.lease);
        let database = &self.executor.database;
        let next = database.transaction(move |connection| store::renew(connection, job, lease));
        match next.await? {
            NextStep::Pending(pending) => {
                let progress = match Step::from_name(&pending.name) {
                    Some(step) => self.executor.execute(job, step, pending.position).await,
                    None => Err(StepError::UnknownStep),
                };
                self.record(job, pending, progress).await
            }
            NextStep::Lost => {
                tracing::info!("the deletion was cancelled or claimed by another worker");
                Ok(Outcome::Settled)
            }
            NextStep::None => {
                tracing::error!("a deletion without an unfinished step is still in progress");
                Ok(Outcome::Settled)
            }
        }
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
                let (database, position) = (&self.executor.database, pending.position);
                let finish =
                    move |connection: &mut _| store::finish_step(connection, job, position);
                let recorded = database.transaction(finish).await?;
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
            Ok(Progress::More) => Ok(Outcome::Continue),
            Ok(Progress::Lost) => Ok(Outcome::Settled),
            Ok(Progress::Waiting(pause)) => {
                let (step, pause_s) = (&pending.name, pause.as_secs());
                tracing::info!(step, pause_s, "step still in progress elsewhere");
                count(&pending, "working");
                Ok(Outcome::Yield(pause))
            }
            Err(error) => self.record_failure(job, pending, &error).await,
        }
    }

    async fn record_failure(
        &self,
        job: Job,
        pending: PendingStep,
        error: &StepError,
    ) -> Result<Outcome, Error> {
        let reason = error.to_string();
        let attempts = u32::try_from(pending.attempts).unwrap_or(0) + 1;
        tracing::warn!(step = pending.name, attempts, error = ?error, "step failed");
        count(&pending, "failed");
        let database = &self.executor.database;
        if let Some(pause) = self.retry.pause_after(attempts) {
            let retry = move |connection: &mut _| {
                store::retry_step(connection, job, &pending, &reason, pause)
            };
            database.transaction(retry).await?;
        } else {
            let failure = error.problem(&pending.name, attempts);
            let entry = AuditAction::DeletionFailed.entry(
                Actor::Service,
                job.user,
                RequestMeta::internal(),
            );
            let entry = entry.detail(json!({ "step": pending.name }));
            let fail = move |connection: &mut _| {
                store::fail(connection, job, &pending, &reason, failure, &entry)
            };
            if database.transaction(fail).await? {
                tracing::error!("the deletion has failed");
                metrics::counter!("deletions_total", "outcome" => "failed").increment(1);
            }
        }
        Ok(Outcome::Settled)
    }
}

fn count(pending: &PendingStep, outcome: &'static str) {
    let step = Step::from_name(&pending.name).map_or("unknown", Names::name);
    metrics::counter!("deletion_steps_total", "step" => step, "outcome" => outcome).increment(1);
}
