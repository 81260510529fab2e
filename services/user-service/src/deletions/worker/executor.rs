use std::time::Duration;

use audit_log::{Actor, Changes, RequestMeta};
use database::{Connection, Error};
use reqwest::header::CONTENT_LENGTH;
use reqwest::{Method, StatusCode};
use values::EmailAddress;

use super::DeletionWorker;
use super::error::StepError;
use super::store::{self, Job};
use crate::accounts::User;
use crate::accounts::store::former_emails;
use crate::audit::AuditAction;
use crate::calls::{CallError, append_path, send};
use crate::deletions::steps::{Progress, Step};
use crate::people_tasks::EraseRequest;
use crate::{accounts, back_off, code_limits, credentials, notifications};

/// Rows of one table that one transaction deletes.
const BATCH: i64 = 1_000;
/// Former addresses of a user whose tasks one call erases.
const FORMER_EMAILS: i64 = 100;
/// The pause when the engine is still working and does not say for how long.
const DEFAULT_PAUSE: Duration = Duration::from_secs(5);
const MIN_PAUSE: Duration = Duration::from_secs(1);
const MAX_PAUSE: Duration = Duration::from_secs(3_600);

impl DeletionWorker {
    /// Executes a part of a step. It takes a limited time and can be repeated without harm.
    pub(super) async fn execute(
        &self,
        job: Job,
        step: Step,
        position: i32,
    ) -> Result<Progress, StepError> {
        if self.settings.engine.is_some() && !job.with_engine {
            return Err(StepError::EngineSkipped);
        }
        match step {
            Step::StopFlows => {
                self.call_engine(job, Method::POST, &["flows", "stop"])
                    .await
            }
            Step::DeleteFlows => self.call_engine(job, Method::DELETE, &["flows"]).await,
            Step::DeleteLogs => self.call_engine(job, Method::DELETE, &["logs"]).await,
            Step::DeleteAccounts => self.call_engine(job, Method::DELETE, &["accounts"]).await,
            Step::DeleteTokens => self.call_engine(job, Method::DELETE, &["tokens"]).await,
            Step::DeletePeopleTasks => self.delete_people_tasks(job).await,
            Step::DeleteSignInData => {
                let delete = move |connection: &mut _| delete_sign_in_data(connection, job);
                Ok(self.database.transaction(delete).await?)
            }
            Step::DeleteUser => {
                // Others may have requested tasks for the user since their step, and a failed deletion continues much later.
                let erased = self.delete_people_tasks(job).await?;
                if erased != Progress::Done {
                    return Ok(erased);
                }
                let meta = RequestMeta::internal();
                let delete = move |connection: &mut _| delete_user(connection, job, position, meta);
                Ok(self.database.transaction(delete).await?)
            }
        }
    }

    /// Makes one of the flow engine's calls that delete a user's data, all of which can be repeated without harm.
    /// `deploy/flow-engine.openapi.yaml` is the contract. `path` follows that of the user.
    async fn call_engine(
        &self,
        job: Job,
        method: Method,
        path: &[&str],
    ) -> Result<Progress, StepError> {
        let engine = self.settings.engine.as_ref();
        let engine = engine.ok_or(StepError::NoEngine)?;
        let url = append_path(engine, &["users", &job.user.to_string()], path);
        let mut request = self.people_tasks.client.request(method.clone(), url);
        if method == Method::POST {
            // Some servers refuse a POST without a length (RFC 9110 section 8.6).
            request = request.header(CONTENT_LENGTH, 0);
        }
        if let Some(token) = &self.settings.engine_token {
            request = request.bearer_auth(token.0.expose());
        }
        let response = send("flow-engine", request).await;
        let response = response.map_err(StepError::Engine)?;
        match response.status() {
            StatusCode::OK | StatusCode::NO_CONTENT | StatusCode::NOT_FOUND => Ok(Progress::Done),
            StatusCode::ACCEPTED => {
                let pause = outbound::retry_after(response.headers()).unwrap_or(DEFAULT_PAUSE);
                Ok(Progress::Waiting(pause.clamp(MIN_PAUSE, MAX_PAUSE)))
            }
            status => Err(StepError::Engine(CallError::Status(status.as_u16()))),
        }
    }

    async fn delete_people_tasks(&self, job: Job) -> Result<Progress, StepError> {
        let settle_time = self.settings.settle_time;
        let time_left =
            move |connection: &mut _| store::time_until_age(connection, job, settle_time);
        if let Some(pause) = self.database.run(time_left).await? {
            return Ok(Progress::Waiting(pause));
        }
        let load = move |connection: &mut _| erase_request(connection, job);
        let Some(request) = self.database.transaction(load).await? else {
            return Ok(Progress::Lost);
        };
        let erased = self.people_tasks.erase(job.user, &request).await;
        let erased = erased.map_err(StepError::PeopleTasks)?;
        let tasks = erased.deleted_tasks;
        if tasks > 0 {
            let count =
                move |connection: &mut _| store::count_deleted_tasks(connection, job, tasks);
            self.database.run(count).await?;
        }
        if erased.blocked {
            return Ok(Progress::BLOCKED);
        }
        if erased.more {
            return Ok(Progress::More);
        }
        let delete = move |connection: &mut _| {
            former_emails::delete(connection, job.user, &request.former_emails)
        };
        // There may be former addresses beyond these.
        let may_have_more = self.database.run(delete).await? > 0;
        Ok(if may_have_more {
            Progress::More
        } else {
            Progress::Done
        })
    }
}

/// The user's address and a batch of former ones. An address that never gave access to tasks may belong to another
/// person, and so may the username. `None` when the claim was lost. Must run in a transaction.
fn erase_request(connection: &mut Connection, job: Job) -> Result<Option<EraseRequest>, Error> {
    let user = accounts::store::find(connection, job.user)?;
    let user = user.filter(|_| job.email_trusted);
    let Some(changed) = store::lock(connection, job)? else {
        return Ok(None);
    };
    let mut former = former_emails::load(connection, job.user, FORMER_EMAILS)?;
    let mut present = Vec::new();
    if let Some(user) = user {
        // What was requested while another user had the address is that user's.
        let times = former_emails::times_of_present(connection, &user)?;
        if times.is_empty() {
            present.push(user.email);
        }
        former.extend(times);
    }
    Ok(Some(EraseRequest {
        emails: present,
        former_emails: former,
        incarnation: store::load_incarnation(connection)?,
        changed,
    }))
}

/// The names that failed sign-ins and requests for codes are counted by. None if the user no longer exists.
fn names(user: Option<&User>) -> Vec<&EmailAddress> {
    let names = user
        .into_iter()
        .flat_map(|user| [&user.email, &user.username]);
    let mut names: Vec<_> = names.collect();
    names.dedup();
    names
}

/// Deletes at most [`BATCH`] of the user's codes, notifications, sessions, keys and failed sign-ins each, all networks of
/// sign-ins, and the client addresses and the identifier in a batch of the audit log. Must run in a transaction.
fn delete_sign_in_data(connection: &mut Connection, job: Job) -> Result<Progress, Error> {
    let user = job.user;
    let found = accounts::store::find(connection, user)?;
    if store::lock(connection, job)?.is_none() {
        return Ok(Progress::Lost);
    }
    let names = names(found.as_ref());
    let mut most = 0;
    let tables = notifications::store::TABLES.into_iter();
    for (table, key) in tables.chain([credentials::store::TABLE]) {
        most = most.max(store::delete_batch(connection, table, key, user, BATCH)?);
    }
    let made = credentials::store::forget_maker_batch(connection, user, BATCH)?;
    code_limits::store::delete_code_requests(connection, &names)?;
    let entries = audit_log::pseudonymise(connection, user)?;
    back_off::forget_networks(connection, user, None)?;
    let failures = back_off::delete_failures_batch(connection, &names, BATCH)?;
    if i64::try_from(most.max(failures)).is_ok_and(|most| most >= BATCH) {
        return Ok(Progress::More);
    }
    let left = unfinished(entries).or_else(|| unfinished(made));
    Ok(left.unwrap_or(Progress::Done))
}

/// Deletes the user and completes the job, unless there are entries of the audit log left to change. From then on
/// the revocation feed reports all tokens of the user as revoked. Must run in a transaction.
fn delete_user(
    connection: &mut Connection,
    job: Job,
    position: i32,
    meta: RequestMeta,
) -> Result<Progress, Error> {
    // Every transaction that locks a user and its deletion locks the user first.
    let user = accounts::store::lock(connection, job.user)?;
    let names = names(user.as_ref());
    // There may have been sign-ins since the previous step. The lock prevents more of them.
    let entries = audit_log::pseudonymise(connection, job.user)?;
    if let Some(progress) = unfinished(entries) {
        return Ok(progress);
    }
    if !store::finish_step(connection, job, position, true)? {
        return Ok(Progress::Lost);
    }
    back_off::delete_all_failures(connection, &names)?;
    code_limits::store::delete_code_requests(connection, &names)?;
    let entry = AuditAction::UserDeleted.entry(Actor::Service, job.user, meta);
    entry.record(connection)?;
    audit_log::pseudonymise(connection, job.user)?;
    accounts::store::delete(connection, job.user)?;
    Ok(Progress::Completed)
}

/// The progress of a step that has rows left to change.
fn unfinished(changes: Changes) -> Option<Progress> {
    changes.more.then_some(if changes.rows > 0 {
        Progress::More
    } else {
        Progress::BLOCKED
    })
}
