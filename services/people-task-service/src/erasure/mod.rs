//! Erasure of a deleted user's data, in steps that the deletion-worker repeats until nothing is left.
//!
//! It deletes the tasks that the user created or requested, with their webhooks, deliveries and attempts, and
//! the webhooks that the user registered for other tasks, the mails that the user would get about them, and what repeats
//! of the user's requests would get. Tasks of others that the user approves, or decided as an administrator or by the link of
//! another person, stay with the user's address and comment: they are the requester's data. In the audit log a pseudonym
//! replaces the user's id, and client addresses are removed.
//!
//! Before anything is deleted, a row in `erased_users` keeps the user's tokens from adding anything, even if this
//! service cannot read the revocation feed. It is kept for as long as a token can be valid, or until the user service
//! reports that the user was active later. Then nothing more is deleted: the deletion was cancelled or has failed.

pub(crate) mod routes;

use std::collections::HashSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

use audit_log::{Actor, AuthMethod, RequestMeta, Subject};
use chrono::{DateTime, Utc};
use database::{Connection, Database, Error};
use jobs::RetentionRule;
use serde::Serialize;
use serde_json::json;
use values::{Timestamp, UserId};

use crate::audit::AuditAction;
use crate::tasks::store as tasks_store;
use crate::tasks::store::erasure::{self as own_tasks, RequesterAddress};
use crate::{changed_users, deliveries, idempotency, mails, quotas, webhooks};

/// How long it is known which users were erased: as long as any token can be valid, and a day.
pub(crate) const RETENTION: RetentionRule = RetentionRule::of_all(
    "erased_users",
    "erased",
    auth::MAX_TOKEN_LIFETIME.saturating_add(Duration::from_hours(24)),
);

/// How long a call deletes one batch of tasks after another.
const CALL_TIME: Duration = Duration::from_millis(200);
/// Tasks that one transaction deletes at most, which takes about 0.1 seconds.
const TASKS: usize = 5_000;
/// If these have more webhooks, which are deleted with their deliveries, it deletes fewer tasks.
const WEBHOOKS_OF_TASKS: i64 = 5_000;
/// How many, each with at most 20 webhooks.
const TASKS_WITH_WEBHOOKS: usize = 250;
/// Webhooks of other users' tasks that one transaction deletes at most.
const WEBHOOKS: usize = 500;
/// Mails about other users' tasks that one transaction deletes at most.
const MAILS: i64 = 1_000;
/// Answers to the user's requests that one transaction deletes at most.
const ANSWERS: i64 = 1_000;

/// A deleted user, as the deletion-worker knows the user.
pub(crate) struct EraseRequest {
    pub(crate) id: UserId,
    /// The addresses under which the user requested tasks.
    pub(crate) addresses: Vec<RequesterAddress>,
    /// The incarnation of the database that the user is deleted from.
    pub(crate) incarnation: String,
    /// The time of the user's latest change that the deletion follows; `None` from an earlier version.
    pub(crate) changed: Option<DateTime<Utc>>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Erased {
    /// The number of deleted tasks, and of deleted webhooks of other tasks.
    pub(crate) deleted: usize,
    pub(crate) deleted_tasks: usize,
    pub(crate) more: bool,
    /// Whether there is more, but other transactions hold all of it at the moment, or the user is active again.
    pub(crate) blocked: bool,
}

/// What one step deletes.
#[derive(Default)]
struct Batch {
    tasks: usize,
    webhooks: usize,
    /// Whether something else was deleted.
    progress: bool,
    more: bool,
}

impl Batch {
    /// A step that deleted this number of rows beside tasks and webhooks, and perhaps left some.
    fn of_rows((deleted, more): (usize, bool)) -> Self {
        Self {
            progress: deleted > 0,
            more,
            ..Self::default()
        }
    }
}

type Step = fn(&mut Connection, &EraseRequest) -> Result<Batch, Error>;

/// The steps of a transaction, of which each waits until nothing is left for those before. A transaction that deletes tasks
/// is followed by another one.
const STEPS: [Step; 4] = [
    delete_free_tasks,
    delete_webhooks,
    delete_mails,
    delete_answers,
];

/// Deletes some of a user's data, in short transactions that do not wait for others. Repeating it does no
/// harm. From then on no token of the user's creates, registers or decides anything, except tokens of another
/// incarnation of the user service's database.
#[tracing::instrument(skip_all, fields(user.id = %user.id))]
pub(crate) async fn erase(
    database: &Database,
    user: EraseRequest,
    meta: RequestMeta,
) -> Result<Erased, Error> {
    let user = Arc::new(user);
    let erased = Arc::clone(&user);
    // Committed first, so that the user's requests do not wait for the deletion.
    let record = move |connection: &mut Connection| {
        let (id, incarnation) = (erased.id, &erased.incarnation);
        own_tasks::record_erased_user(connection, id, incarnation, erased.changed)
    };
    database.transaction(record).await?;
    let (started, mut tasks, mut deleted) = (Instant::now(), 0, 0);
    let last = loop {
        let (user, meta) = (Arc::clone(&user), meta.clone());
        let erase = move |connection: &mut _| erase_in_transaction(connection, &user, meta);
        let batch = database.transaction(erase).await?;
        tasks += batch.tasks;
        deleted += batch.tasks + batch.webhooks;
        let ends_early = batch.tasks < TASKS || started.elapsed() >= CALL_TIME;
        if batch.tasks == 0 || batch.more && ends_early {
            break batch;
        }
    };
    let more = last.more;
    let blocked = more && deleted == 0 && !last.progress;
    tracing::info!(deleted, more, blocked, "a deleted user's data was erased");
    Ok(Erased {
        deleted,
        deleted_tasks: tasks,
        more,
        blocked,
    })
}

fn erase_in_transaction(
    connection: &mut Connection,
    user: &EraseRequest,
    meta: RequestMeta,
) -> Result<Batch, Error> {
    let mut all = Batch::default();
    if !own_tasks::is_being_erased(connection, user.id, &user.incarnation)? {
        all.more = true;
        return Ok(all);
    }
    for step in STEPS {
        let batch = step(connection, user)?;
        all.tasks += batch.tasks;
        all.webhooks += batch.webhooks;
        all.progress |= batch.progress;
        all.more = batch.more;
        // Tasks free bytes of several users, in the order of the users. What frees other bytes comes in the next transaction.
        if batch.more || batch.tasks > 0 {
            break;
        }
    }
    if all.tasks + all.webhooks > 0 {
        let by = (Actor::Service, AuthMethod::ServiceToken);
        let entry = AuditAction::UserErased.by(by, meta);
        let entry = entry.on(Subject::User(user.id));
        let detail = json!({"tasks": all.tasks, "webhooks": all.webhooks});
        entry.detail(detail).record(connection)?;
    }
    if !all.more && all.tasks == 0 {
        changed_users::store::delete(connection, user.id)?;
        deliveries::test_store::delete_of(connection, user.id)?;
        quotas::forget(connection, user.id)?;
        let entries = audit_log::pseudonymise(connection, user.id)?;
        all.more = entries.more;
        all.progress |= entries.rows > 0;
    }
    Ok(all)
}

/// Deletes mails that are to be sent to the user about tasks of others.
fn delete_mails(connection: &mut Connection, user: &EraseRequest) -> Result<Batch, Error> {
    let addresses = user.addresses.iter();
    let present = addresses.filter(|address| address.until == Timestamp::MAX.0);
    let present: Vec<_> = present.map(|address| &address.email).collect();
    mails::delete_of_recipients(connection, &present, MAILS).map(Batch::of_rows)
}

/// Deletes what the user's repeats of requests would get.
fn delete_answers(connection: &mut Connection, user: &EraseRequest) -> Result<Batch, Error> {
    idempotency::store::delete_of_user(connection, user.id, ANSWERS).map(Batch::of_rows)
}

/// Deletes webhooks that the user registered for tasks of others, with their deliveries. A decision of such a task,
/// which adds deliveries, comes before or after.
fn delete_webhooks(connection: &mut Connection, user: &EraseRequest) -> Result<Batch, Error> {
    let mut rows = webhooks::store::load_of_user(connection, user.id, WEBHOOKS)?;
    let tasks: Vec<_> = rows.iter().map(|(_, task)| *task).collect();
    let locked = tasks_store::lock_free(connection, &tasks)?;
    rows.retain(|(_, task)| locked.contains(task));
    let mut ids: Vec<_> = rows.into_iter().map(|(id, _)| id).collect();
    let held = deliveries::store::lock_free_of_webhooks(connection, &ids)?;
    ids.retain(|id| !held.contains(id));
    let ids = webhooks::store::lock_free(connection, &ids)?;
    Ok(Batch {
        webhooks: webhooks::store::delete(connection, &ids)?,
        more: !webhooks::store::load_of_user(connection, user.id, 1)?.is_empty(),
        ..Batch::default()
    })
}

/// Deletes those of the oldest tasks of which no other transaction holds a row.
///
/// The worker locks a delivery before its webhook. Locking in the same order here avoids deadlocks.
fn delete_free_tasks(connection: &mut Connection, user: &EraseRequest) -> Result<Batch, Error> {
    let (id, addresses) = (user.id, &user.addresses);
    let locked =
        own_tasks::load_tasks_of_user(connection, own_tasks::find_free, id, addresses, TASKS)?;
    let (mut ids, created): (Vec<_>, Vec<_>) = locked.into_iter().unzip();
    if webhooks::store::are_more_than(connection, WEBHOOKS_OF_TASKS, &ids)? {
        ids.truncate(TASKS_WITH_WEBHOOKS);
    }
    // Deliveries have a webhook, and none is added while the states of the tasks are locked.
    if webhooks::store::are_more_than(connection, 0, &ids)? {
        let held: HashSet<_> = deliveries::store::lock_free_of_tasks(connection, &ids)?
            .into_iter()
            .chain(webhooks::store::lock_free_of_tasks(connection, &ids)?)
            .collect();
        ids.retain(|id| !held.contains(id));
    }
    let mut batch = Batch::default();
    if let Some(oldest) = created.into_iter().min() {
        // The holder of a task's secret may have been the user. The tasks' ids are not known after this.
        let entries = audit_log::forget_addresses(connection, &ids, oldest)?;
        if entries.more {
            batch.progress = entries.rows > 0;
            batch.more = true;
            return Ok(batch);
        }
        batch.tasks = own_tasks::delete(connection, &ids)?;
    }
    batch.more = own_tasks::has_tasks_of_user(connection, id, addresses)?;
    Ok(batch)
}
