use std::time::{Duration, Instant};

use actix_web::http::StatusCode;
use audit_log::{Actor, RequestMeta};
use http_kit::Problem;
use messaging::{Disposition, Message, Publisher};
use serde_json::{Value, json};
use telemetry::RequestContext;
use tokio_util::sync::CancellationToken;
use values::{DeletionId, FromText as _};

use super::perform::{Hands, Progress, StepError};
use super::store::{self, Job, Next, PendingStep};
use crate::audit::AuditAction;
use crate::deletions::Step;
use crate::jitter;

/// A message is held no longer than this: longer jobs are given back and wake up somebody again.
const LONGEST_TURN: Duration = Duration::from_secs(20);
const LONGEST_RETRY_PAUSE: Duration = Duration::from_secs(300);
/// A database that is away is not asked again at once.
const PAUSE_WITHOUT_DATABASE: Duration = Duration::from_secs(1);

/// Goes through the steps of jobs.
#[derive(Debug, Clone)]
pub(super) struct Worker {
    pub(super) hands: Hands,
    pub(super) publisher: Publisher,
    pub(super) shutdown: CancellationToken,
    pub(super) lease: Duration,
    pub(super) retry_pause: Duration,
    pub(super) max_attempts: u32,
}

/// How a piece of a job's work left the job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Turn {
    /// There is more to do now.
    GoOn,
    /// The job has ended, waits, or is no longer ours.
    Over,
}

impl Worker {
    /// Handles a wake-up: takes the job, if there is one to take, and goes through its steps.
    pub(super) async fn handle(self, message: Message) -> Disposition {
        let Ok(id) = DeletionId::from_text(&message.id) else {
            return Disposition::Reject;
        };
        let (lease, orphaned) = (self.lease, message.redelivered);
        let database = &self.hands.database;
        let claimed = database
            .run(move |connection| store::claim(connection, id, lease, orphaned))
            .await;
        match claimed {
            Ok(None) => Disposition::Done,
            Ok(Some(job)) => {
                self.work(job).await;
                Disposition::Done
            }
            Err(error) => {
                tracing::warn!(error = ?error, "a deletion could not be claimed");
                self.rest().await;
                Disposition::Requeue
            }
        }
    }

    #[tracing::instrument(skip_all, fields(deletion.id = %job.id, user.id = %job.user))]
    async fn work(&self, job: Job) {
        let started = Instant::now();
        let outcome = loop {
            match self.turn(job).await {
                Ok(Turn::Over) => break Ok(()),
                Ok(Turn::GoOn) if self.shutdown.is_cancelled() => {
                    break self.release(job, Duration::ZERO).await;
                }
                Ok(Turn::GoOn) if started.elapsed() > LONGEST_TURN => {
                    break self.give_back(job).await;
                }
                Ok(Turn::GoOn) => {}
                Err(error) => break Err(error),
            }
        };
        if let Err(error) = outcome {
            // The lease runs out, and the sweep wakes up whoever is there then.
            tracing::warn!(error = ?error, "a deletion's progress could not be written");
        }
    }

    /// Does one piece of the job's first unfinished step, and writes down what came of it.
    async fn turn(&self, job: Job) -> Result<Turn, database::Error> {
        let (database, lease) = (&self.hands.database, self.lease);
        let next = database.transaction(move |connection| store::renew(connection, job, lease));
        let pending = match next.await? {
            Next::Step(pending) => pending,
            Next::NotOurs => {
                tracing::info!("the deletion was cancelled or taken over");
                return Ok(Turn::Over);
            }
            Next::Nothing => {
                tracing::error!("a deletion without an unfinished step is still in progress");
                return Ok(Turn::Over);
            }
        };
        let progress = match Step::of_name(&pending.name) {
            Some(step) => self.hands.perform(job, step, pending.position).await,
            None => Err(StepError::UnknownStep),
        };
        self.settle(job, pending, progress).await
    }

    async fn settle(
        &self,
        job: Job,
        pending: PendingStep,
        progress: Result<Progress, StepError>,
    ) -> Result<Turn, database::Error> {
        let database = &self.hands.database;
        match progress {
            Ok(Progress::Done) => {
                let position = pending.position;
                let finished = database
                    .transaction(move |connection| store::finish_step(connection, job, position));
                let finished = finished.await?;
                tracing::info!(step = pending.name, noted = finished, "step done");
                count(&pending, "done");
                Ok(if finished { Turn::GoOn } else { Turn::Over })
            }
            Ok(Progress::Completed) => {
                tracing::info!("user deleted");
                count(&pending, "done");
                metrics::counter!("deletions_total", "outcome" => "completed").increment(1);
                Ok(Turn::Over)
            }
            Ok(Progress::More) => Ok(Turn::GoOn),
            Ok(Progress::NotOurs) => Ok(Turn::Over),
            Ok(Progress::Working(wait)) => {
                tracing::info!(
                    step = pending.name,
                    wait_s = wait.as_secs(),
                    "still working"
                );
                count(&pending, "working");
                self.release(job, wait).await?;
                Ok(Turn::Over)
            }
            Err(error) => self.note_failure(job, pending, &error).await,
        }
    }

    async fn note_failure(
        &self,
        job: Job,
        pending: PendingStep,
        error: &StepError,
    ) -> Result<Turn, database::Error> {
        let reason = error.to_string();
        let attempts = u32::try_from(pending.attempts).unwrap_or(0) + 1;
        tracing::warn!(step = pending.name, attempts, error = ?error, "step failed");
        count(&pending, "failed");
        let database = &self.hands.database;
        if attempts >= self.max_attempts {
            let failure = failure(&pending.name, attempts, error);
            let entry = AuditAction::DeletionFailed.entry(
                Actor::Service,
                job.user,
                RequestMeta::internal(),
            );
            let entry = entry.detail(json!({ "step": pending.name }));
            let failed = database.transaction(move |connection| {
                store::fail(connection, job, &pending, &reason, failure, &entry)
            });
            if failed.await? {
                tracing::error!("the deletion has failed");
                metrics::counter!("deletions_total", "outcome" => "failed").increment(1);
            }
        } else {
            let pause = jitter::growing(self.retry_pause, attempts, LONGEST_RETRY_PAUSE);
            let retried = database.transaction(move |connection| {
                store::retry_step(connection, job, &pending, &reason, pause)
            });
            retried.await?;
        }
        Ok(Turn::Over)
    }

    /// Gives a long job back and wakes up whoever has time, so that no message is held for long.
    async fn give_back(&self, job: Job) -> Result<(), database::Error> {
        self.release(job, Duration::ZERO).await?;
        let context = RequestContext::current_or_fresh();
        self.publisher.send([Message::new(job.id, context)]);
        Ok(())
    }

    async fn release(&self, job: Job, pause: Duration) -> Result<(), database::Error> {
        let database = &self.hands.database;
        database
            .run(move |connection| store::release(connection, job, pause))
            .await
    }

    async fn rest(&self) {
        tokio::select! {
            () = tokio::time::sleep(PAUSE_WITHOUT_DATABASE) => {}
            () = self.shutdown.cancelled() => {}
        }
    }
}

fn count(pending: &PendingStep, outcome: &'static str) {
    let step = Step::of_name(&pending.name).map_or("unknown", Step::name);
    metrics::counter!("deletion_steps_total", "step" => step, "outcome" => outcome).increment(1);
}

/// The problem that a failed job shows: which step, and why.
fn failure(step: &str, attempts: u32, error: &StepError) -> Value {
    let status = match error {
        StepError::Engine(_) | StepError::PeopleTasks(_) => StatusCode::BAD_GATEWAY,
        StepError::NoEngine | StepError::Database(_) | StepError::UnknownStep => {
            StatusCode::INTERNAL_SERVER_ERROR
        }
    };
    let times = if attempts == 1 { "attempt" } else { "attempts" };
    let detail = format!(
        "The step `{step}` failed after {attempts} {times}: {error}. What was deleted stays deleted; \
         delete the user again to go on."
    );
    let problem = Problem::new(status, "deletion-step-failed", detail)
        .with("step", step)
        .with("attempts", attempts);
    serde_json::to_value(problem.body()).unwrap_or_default()
}
