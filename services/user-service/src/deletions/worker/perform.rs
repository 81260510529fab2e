use std::time::Duration;

use audit_log::{Actor, RequestMeta};
use database::Database;

use super::store::{self, Job};
use super::user_store;
use crate::audit::AuditAction;
use crate::deletions::Step;
use crate::deletions::calls::CallError;
use crate::deletions::engine::{Answer, Engine, Erasure};
use crate::deletions::people_tasks::{EraseError, PeopleTasks};
use crate::sign_in::SignInName;

/// Rows of one table that one transaction deletes.
const BATCH: i64 = 1_000;

/// What one piece of a step's work came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Progress {
    /// The step is done, and is to be noted as finished.
    Done,
    /// The user is gone and the job with it: both were written together.
    Completed,
    /// There is more of this step to do.
    More,
    /// Somebody else is working on it; ask again after this time.
    Working(Duration),
    /// The job is no longer ours.
    NotOurs,
}

/// Why a step's attempt failed. It is shown in the job's `failure`, so it names no address and no secret.
#[derive(Debug, thiserror::Error)]
pub(super) enum StepError {
    #[error("the flow engine {0}")]
    Engine(CallError),
    #[error("no flow engine is configured any more (FLOW_ENGINE_URL)")]
    NoEngine,
    #[error(transparent)]
    PeopleTasks(#[from] EraseError),
    #[error("the database failed")]
    Database(#[from] database::Error),
    #[error("this version knows no such step")]
    UnknownStep,
}

impl From<diesel::result::Error> for StepError {
    fn from(error: diesel::result::Error) -> Self {
        Self::Database(error.into())
    }
}

/// Whatever the steps act upon.
#[derive(Debug, Clone)]
pub(super) struct Hands {
    pub(super) database: Database,
    pub(super) engine: Option<Engine>,
    pub(super) people_tasks: PeopleTasks,
    pub(super) settle_time: Duration,
}

impl Hands {
    /// Does one piece of a step, which takes a bounded time and can be repeated without harm.
    pub(super) async fn perform(
        &self,
        job: Job,
        step: Step,
        position: i32,
    ) -> Result<Progress, StepError> {
        match step {
            Step::StopFlows => self.engine(job, Erasure::StopFlows).await,
            Step::DeleteFlows => self.engine(job, Erasure::Flows).await,
            Step::DeleteLogs => self.engine(job, Erasure::Logs).await,
            Step::DeleteAccounts => self.engine(job, Erasure::Accounts).await,
            Step::DeleteTokens => self.engine(job, Erasure::Tokens).await,
            Step::DeletePeopleTasks => self.people_tasks(job).await,
            Step::DeleteSignInData => self.sign_in_data(job).await,
            Step::DeleteUser => self.user(job, position).await,
        }
    }

    async fn engine(&self, job: Job, erasure: Erasure) -> Result<Progress, StepError> {
        let engine = self.engine.as_ref().ok_or(StepError::NoEngine)?;
        let answer = engine.erase(job.user, erasure).await;
        match answer.map_err(StepError::Engine)? {
            Answer::Done => Ok(Progress::Done),
            Answer::Working(wait) => Ok(Progress::Working(wait)),
        }
    }

    async fn people_tasks(&self, job: Job) -> Result<Progress, StepError> {
        let settle_time = self.settle_time;
        let unsettled = self
            .database
            .run(move |connection| store::time_until_age(connection, job, settle_time));
        if let Some(wait) = unsettled.await? {
            return Ok(Progress::Working(wait));
        }
        let email = self
            .database
            .run(move |connection| user_store::confirmed_email_of(connection, job.user));
        let emails: Vec<String> = email.await?.into_iter().collect();
        let erased = self.people_tasks.erase(job.user, &emails).await?;
        tracing::debug!(tasks = erased.deleted, "people tasks erased");
        Ok(if erased.more {
            Progress::More
        } else {
            Progress::Done
        })
    }

    async fn sign_in_data(&self, job: Job) -> Result<Progress, StepError> {
        let names = self.names(job).await?;
        let accounts = accounts(&names);
        let more = self.database.transaction(move |connection| {
            user_store::delete_sign_in_data(connection, job.user, &accounts, BATCH)
        });
        Ok(if more.await? {
            Progress::More
        } else {
            Progress::Done
        })
    }

    async fn user(&self, job: Job, position: i32) -> Result<Progress, StepError> {
        let names = self.names(job).await?;
        let accounts = accounts(&names);
        let entry =
            AuditAction::UserDeleted.entry(Actor::Service, job.user, RequestMeta::internal());
        let deleted = self.database.transaction(move |connection| {
            user_store::delete_user(connection, job, position, &accounts, &entry)
        });
        Ok(if deleted.await? {
            Progress::Completed
        } else {
            Progress::NotOurs
        })
    }

    async fn names(&self, job: Job) -> Result<Vec<String>, database::Error> {
        self.database
            .run(move |connection| user_store::names_of(connection, job.user))
            .await
    }
}

/// How failed sign-ins name the accounts of these names.
fn accounts(names: &[String]) -> Vec<[u8; 32]> {
    let names = names.iter().map(|name| SignInName::new(name));
    names.map(|name| name.name_hash()).collect()
}
