use std::collections::BTreeSet;

use audit_log::{Actor, Changes, Entry, RequestMeta};
use database::{Connection, Error};
use reqwest::Method;
use values::{Names as _, UserId};

use super::error::StepError;
use super::handler::DeletionWorker;
use super::store::{self, Job};
use crate::accounts::store::former_emails::FormerEmail;
use crate::audit::AuditAction;
use crate::back_off::name_hash;
use crate::deletions::steps::{Progress, Step};
use crate::notifications::{Kind, code_store};
use crate::passwords::mailbox_hash;
use crate::people_tasks::{EraseRequest, FormerAddress};
use crate::{accounts, back_off, credentials, notifications, passwords};

/// Rows of one table that one transaction deletes.
const BATCH: i64 = 1_000;
/// Former addresses of a user whose tasks one call erases.
const FORMER_EMAILS: i64 = 100;

impl DeletionWorker {
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
            Step::StopFlows => {
                self.call_engine(job, Method::POST, &["flows", "stop"])
                    .await
            }
            Step::DeleteFlows => self.call_engine(job, Method::DELETE, &["flows"]).await,
            Step::DeleteLogs => self.call_engine(job, Method::DELETE, &["logs"]).await,
            Step::DeleteAccounts => self.call_engine(job, Method::DELETE, &["accounts"]).await,
            Step::DeleteTokens => self.call_engine(job, Method::DELETE, &["tokens"]).await,
            Step::DeletePeopleTasks => self.delete_people_tasks(job).await,
            Step::DeleteSignInData => self.delete_sign_in_data(job).await,
            Step::DeleteUser => self.delete_user(job, position).await,
        }
    }

    async fn call_engine(
        &self,
        job: Job,
        method: Method,
        path: &[&str],
    ) -> Result<Progress, StepError> {
        let engine = self.engine.as_ref().ok_or(StepError::NoEngine)?;
        let erased = engine.erase(job.user, (method, path)).await;
        erased.map_err(StepError::Engine)
    }

    async fn delete_people_tasks(&self, job: Job) -> Result<Progress, StepError> {
        let settle_time = self.settle_time;
        let time_left =
            move |connection: &mut _| store::time_until_age(connection, job, settle_time);
        if let Some(pause) = self.database.run(time_left).await? {
            return Ok(Progress::Waiting(pause));
        }
        let (request, former) = self.erase_request(job).await?;
        let erased = self.people_tasks.erase(job.user, &request).await?;
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
        if former.is_empty() {
            return Ok(Progress::Done);
        }
        // There may be former addresses beyond these.
        let delete = move |connection: &mut _| {
            accounts::store::former_emails::delete(connection, job.user, &former)
        };
        self.database.run(delete).await?;
        Ok(Progress::More)
    }

    /// The user's address and a batch of former ones. An address that never gave access to tasks may belong to another
    /// person, and so may the username.
    async fn erase_request(&self, job: Job) -> Result<(EraseRequest, Vec<FormerEmail>), Error> {
        let load = move |connection: &mut _| {
            let user = accounts::store::find(connection, job.user)?;
            let former = accounts::store::former_emails::load(connection, job.user, FORMER_EMAILS)?;
            let incarnation = store::load_incarnation(connection)?;
            Ok::<_, Error>((user, former, incarnation))
        };
        let (user, former, incarnation) = self.database.run(load).await?;
        let user = user.filter(|_| job.email_trusted);
        let former_emails = former.iter().map(|former| FormerAddress {
            email: former.email.clone(),
            since: former.since.into(),
            until: former.until.into(),
        });
        let request = EraseRequest {
            emails: Vec::from_iter(user.map(|user| user.email)),
            former_emails: former_emails.collect(),
            incarnation,
        };
        Ok((request, former))
    }

    async fn delete_sign_in_data(&self, job: Job) -> Result<Progress, StepError> {
        let hashes = self.hashes(job).await?;
        let delete =
            move |connection: &mut _| delete_sign_in_data(connection, job.user, &hashes, BATCH);
        Ok(self.database.transaction(delete).await?)
    }

    async fn delete_user(&self, job: Job, position: i32) -> Result<Progress, StepError> {
        let hashes = self.hashes(job).await?;
        let entry =
            AuditAction::UserDeleted.entry(Actor::Service, job.user, RequestMeta::internal());
        let delete =
            move |connection: &mut _| delete_user(connection, job, position, &hashes, &entry);
        Ok(self.database.transaction(delete).await?)
    }

    /// The hashes by which things about the user are counted; none if the user no longer exists.
    async fn hashes(&self, job: Job) -> Result<UserHashes, Error> {
        let find = move |connection: &mut _| accounts::store::find(connection, job.user);
        let user = self.database.run(find).await?;
        let names = user.iter().flat_map(|user| {
            let names = [user.email.normalized(), user.username.normalized()];
            names.map(str::to_owned)
        });
        let names: BTreeSet<String> = names.collect();
        let mailboxes = names.iter().flat_map(|name| {
            let kinds = Kind::ALL.iter();
            kinds.map(move |kind| mailbox_hash(*kind, name))
        });
        Ok(UserHashes {
            names: names.iter().map(|name| name_hash(name)).collect(),
            mailboxes: mailboxes.collect(),
        })
    }
}

/// The hashes by which the service counts things about a user.
#[derive(Debug)]
struct UserHashes {
    /// Of the names that failed sign-ins are counted by.
    names: Vec<[u8; 32]>,
    /// Of the mailboxes that requests for codes are counted by.
    mailboxes: Vec<[u8; 32]>,
}

/// Deletes at most `batch` of the user's codes, notifications, sessions, keys and failed sign-ins each, all networks of sign-ins,
/// and the client addresses and the identifier in a batch of the audit log.
///
/// Must run in a transaction.
fn delete_sign_in_data(
    connection: &mut Connection,
    user: UserId,
    hashes: &UserHashes,
    batch: i64,
) -> Result<Progress, Error> {
    let mut most = 0;
    for (table, key) in [
        code_store::TABLE,
        notifications::store::TABLE,
        credentials::store::TABLE,
    ] {
        most = most.max(store::delete_batch(connection, table, key, user, batch)?);
    }
    let made = credentials::store::forget_maker_batch(connection, user, batch)?;
    passwords::store::delete_code_requests(connection, &hashes.mailboxes)?;
    let entries = audit_log::pseudonymise(connection, user)?;
    back_off::forget_networks(connection, user, None)?;
    let failures = back_off::delete_failures_batch(connection, &hashes.names, batch)?;
    let most = most.max(made).max(failures);
    if i64::try_from(most).is_ok_and(|most| most >= batch) {
        return Ok(Progress::More);
    }
    Ok(unfinished(entries).unwrap_or(Progress::Done))
}

/// Deletes the user and completes the job, unless there are entries of the audit log left to change. From then on
/// the revocation feed reports all tokens of the user as revoked.
///
/// Must run in a transaction.
fn delete_user(
    connection: &mut Connection,
    job: Job,
    position: i32,
    hashes: &UserHashes,
    entry: &Entry,
) -> Result<Progress, Error> {
    // Every transaction that locks a user and its deletion locks the user first.
    accounts::store::lock(connection, job.user)?;
    // There may have been sign-ins since the previous step. The lock prevents more of them.
    let entries = audit_log::pseudonymise(connection, job.user)?;
    if let Some(progress) = unfinished(entries) {
        return Ok(progress);
    }
    if !store::finish_step(connection, job, position, true)? {
        return Ok(Progress::Lost);
    }
    back_off::delete_all_failures(connection, &hashes.names)?;
    passwords::store::delete_code_requests(connection, &hashes.mailboxes)?;
    entry.record(connection)?;
    audit_log::pseudonymise(connection, job.user)?;
    accounts::store::delete(connection, job.user)?;
    Ok(Progress::Completed)
}

/// The progress of a step that has entries of the audit log left to change.
fn unfinished(entries: Changes) -> Option<Progress> {
    entries.more.then_some(if entries.rows > 0 {
        Progress::More
    } else {
        Progress::BLOCKED
    })
}
