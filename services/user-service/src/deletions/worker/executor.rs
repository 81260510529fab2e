use std::time::Duration;

use audit_log::{Actor, RequestMeta};
use database::Database;

use super::error::StepError;
use super::progress::{BLOCKED_PAUSE, Progress};
use super::store::{self, Job};
use super::user_data;
use crate::accounts::{self, User};
use crate::audit::AuditAction;
use crate::back_off::name_hash;
use crate::deletions::engine::{Engine, EngineResponse, Erasure};
use crate::deletions::people_tasks::PeopleTasks;
use crate::deletions::steps::Step;

/// Rows of one table that one transaction deletes.
const BATCH: i64 = 1_000;
/// Executes the steps of jobs.
#[derive(Debug, Clone)]
pub(super) struct StepExecutor {
    pub(super) database: Database,
    pub(super) engine: Option<Engine>,
    pub(super) people_tasks: PeopleTasks,
    pub(super) settle_time: Duration,
}

impl StepExecutor {
    /// Executes a part of a step. It takes a limited time and can be repeated without harm.
    pub(super) async fn execute(
        &self,
        job: Job,
        step: Step,
        position: i32,
    ) -> Result<Progress, StepError> {
        if self.engine.is_some() && !job.with_engine {
            return Err(StepError::EngineSkipped);
        }
        match step {
            Step::StopFlows => self.call_engine(job, Erasure::StopFlows).await,
            Step::DeleteFlows => self.call_engine(job, Erasure::Flows).await,
            Step::DeleteLogs => self.call_engine(job, Erasure::Logs).await,
            Step::DeleteAccounts => self.call_engine(job, Erasure::Accounts).await,
            Step::DeleteTokens => self.call_engine(job, Erasure::Tokens).await,
            Step::DeletePeopleTasks => self.delete_people_tasks(job).await,
            Step::DeleteSignInData => self.delete_sign_in_data(job).await,
            Step::DeleteUser => self.delete_user(job, position).await,
        }
    }

    async fn call_engine(&self, job: Job, erasure: Erasure) -> Result<Progress, StepError> {
        let engine = self.engine.as_ref().ok_or(StepError::NoEngine)?;
        let response = engine.erase(job.user, erasure).await;
        match response.map_err(StepError::Engine)? {
            EngineResponse::Done => Ok(Progress::Done),
            EngineResponse::Working(pause) => Ok(Progress::Waiting(pause)),
        }
    }

    async fn delete_people_tasks(&self, job: Job) -> Result<Progress, StepError> {
        let settle_time = self.settle_time;
        let time_left = self
            .database
            .run(move |connection| store::time_until_age(connection, job, settle_time));
        if let Some(pause) = time_left.await? {
            return Ok(Progress::Waiting(pause));
        }
        // An address that is not confirmed may belong to another person, and so may the username.
        let user = self
            .load_user(job)
            .await?
            .filter(|user| user.email_verified);
        let emails = Vec::from_iter(user.map(|user| user.email.normalized().to_owned()));
        let incarnation = self.database.run(store::load_incarnation).await?;
        let erase = self.people_tasks.erase(job.user, &emails, &incarnation);
        let erased = erase.await?;
        tracing::debug!(tasks = erased.deleted, "people tasks erased");
        Ok(if erased.blocked {
            Progress::Waiting(BLOCKED_PAUSE)
        } else {
            more_or_done(erased.more)
        })
    }

    async fn delete_sign_in_data(&self, job: Job) -> Result<Progress, StepError> {
        let name_hashes = self.name_hashes(job).await?;
        let delete = move |connection: &mut _| {
            user_data::delete_sign_in_data(connection, job.user, &name_hashes, BATCH)
        };
        Ok(self.database.transaction(delete).await?)
    }

    async fn delete_user(&self, job: Job, position: i32) -> Result<Progress, StepError> {
        let name_hashes = self.name_hashes(job).await?;
        let entry =
            AuditAction::UserDeleted.entry(Actor::Service, job.user, RequestMeta::internal());
        let delete = move |connection: &mut _| {
            user_data::delete_user(connection, job, position, &name_hashes, &entry)
        };
        Ok(self.database.transaction(delete).await?)
    }

    /// The hashes of the names by which the user signs in; none if the user no longer exists.
    async fn name_hashes(&self, job: Job) -> Result<Vec<[u8; 32]>, database::Error> {
        let Some(user) = self.load_user(job).await? else {
            return Ok(Vec::new());
        };
        let mut names = vec![user.email.normalized(), user.username.normalized()];
        names.dedup();
        Ok(names.into_iter().map(name_hash).collect())
    }

    async fn load_user(&self, job: Job) -> Result<Option<User>, database::Error> {
        let find = move |connection: &mut _| accounts::store::find(connection, job.user);
        self.database.run(find).await
    }
}

fn more_or_done(more: bool) -> Progress {
    if more { Progress::More } else { Progress::Done }
}
