use std::time::Duration;

use audit_log::Entry;
use chrono::{DateTime, Utc};
use database::{Connection, Error, composed, interval};
use diesel::dsl::now;
use diesel::prelude::*;
use diesel::sql_types::{BigInt, Binary, Timestamptz};
use jobs::{Claim, Lease};
use serde_json::Value;
use values::{DeletionId, Names as _, UserId};

use crate::accounts;
use crate::deletions::JOBS;
use crate::deletions::steps::Step;
use crate::deletions::store::DeletionStatus;
use crate::schema::{database_incarnation, deletion_steps, deletions, users};

#[derive(Debug, Clone, Copy)]
pub(super) struct Job {
    pub(super) lease: Lease<DeletionId>,
    pub(super) user: UserId,
    /// Whether the user's address gave access to tasks when the deletion was requested.
    pub(super) email_trusted: bool,
    /// Whether some of its steps are at the flow engine.
    pub(super) with_engine: bool,
}

#[derive(Debug, Clone, Queryable)]
pub(super) struct PendingStep {
    pub(super) position: i32,
    pub(super) name: String,
    /// Attempts that failed since the step last made progress.
    pub(super) attempts: i32,
    /// Whether the job has been in progress for longer than it may be.
    pub(super) overdue: bool,
}

pub(super) fn claim(
    connection: &mut Connection,
    claim: Claim<DeletionId>,
) -> Result<Option<Job>, Error> {
    let Some(lease) = JOBS.claim(connection, claim)? else {
        return Ok(None);
    };
    let (user, email_trusted) = deletions::table
        .find(lease.id)
        .select((deletions::user_id, deletions::email_trusted))
        .first(connection)?;
    let steps = deletion_steps::table.filter(deletion_steps::deletion_id.eq(lease.id));
    let names: Vec<String> = steps.select(deletion_steps::name).load(connection)?;
    let steps = names.iter().filter_map(|name| Step::from_name(name));
    Ok(Some(Job {
        lease,
        user,
        email_trusted,
        with_engine: steps.into_iter().any(Step::is_of_engine),
    }))
}

/// The row of a job, while the claim on it is valid.
macro_rules! claimed {
    ($job:expr) => {
        deletions::table
            .find($job.lease.id)
            .filter(deletions::lease.eq($job.lease.number))
            .filter(deletions::finished.is_null())
    };
}

/// Extends the claim and loads the next step, so that a cancelled job stops before its next step. The step is overdue
/// if the job was started longer ago than `max_age`. `None` when the claim was lost: the job was cancelled, has ended, or
/// was claimed by another worker.
pub(super) fn renew(
    connection: &mut Connection,
    job: Job,
    duration: Duration,
    max_age: Duration,
) -> Result<Option<PendingStep>, Error> {
    if !JOBS.renew(connection, job.lease, duration)? {
        return Ok(None);
    }
    let step = deletion_steps::table
        .inner_join(deletions::table)
        .filter(deletion_steps::deletion_id.eq(job.lease.id))
        .filter(deletion_steps::finished.is_null())
        .order(deletion_steps::position)
        .select((
            deletion_steps::position,
            deletion_steps::name,
            deletion_steps::attempts,
            (deletions::started + interval(max_age)).lt(now.into_sql::<Timestamptz>()),
        ))
        .first(connection)?;
    Ok(Some(step))
}

/// Keeps the job from being cancelled and the user from being changed until the end of the transaction, and returns the time
/// of the latest change that the deletion follows. `None` when the claim was lost.
pub(super) fn lock(connection: &mut Connection, job: Job) -> Result<Option<DateTime<Utc>>, Error> {
    let started: Option<DateTime<Utc>> = claimed!(job)
        .select(deletions::started)
        .for_share()
        .first(connection)
        .optional()?;
    let Some(started) = started else {
        return Ok(None);
    };
    let changed: Option<DateTime<Utc>> = users::table
        .find(job.user)
        .select(users::access_changed)
        .first(connection)
        .optional()?
        .flatten();
    // After a restore the user may have changed earlier than the people-task service was told.
    Ok(changed.max(Some(started)))
}

/// Records that a step is finished and, if it is the last one, that the job is completed. `false` when the claim was lost;
/// then nothing is written. Must run in a transaction.
pub(super) fn finish_step(
    connection: &mut Connection,
    job: Job,
    position: i32,
    is_last: bool,
) -> Result<bool, Error> {
    let finished = now.into_sql::<Timestamptz>().nullable();
    let completed = is_last.then(|| {
        (
            deletions::status.eq(DeletionStatus::Completed.name()),
            deletions::finished.eq(finished),
            deletions::lease_until.eq(None::<DateTime<Utc>>),
        )
    });
    let steps_done = deletions::steps_done.eq(deletions::steps_done + 1);
    let counted = diesel::update(claimed!(job))
        .set((steps_done, completed))
        .execute(connection)?;
    if counted == 0 {
        return Ok(false);
    }
    diesel::update(deletion_steps::table.find((job.lease.id, position)))
        .set(deletion_steps::finished.eq(finished))
        .execute(connection)?;
    Ok(true)
}

/// Adds to the number of tasks that were deleted so far, unless the claim was lost.
pub(super) fn count_deleted_tasks(
    connection: &mut Connection,
    job: Job,
    tasks: u32,
) -> Result<(), Error> {
    diesel::update(claimed!(job))
        .set(deletions::deleted_tasks.eq(deletions::deleted_tasks + i64::from(tasks)))
        .execute(connection)?;
    Ok(())
}

pub(super) fn forget_failures(
    connection: &mut Connection,
    job: Job,
    position: i32,
) -> Result<(), Error> {
    diesel::update(deletion_steps::table.find((job.lease.id, position)))
        .set(deletion_steps::attempts.eq(0))
        .execute(connection)?;
    Ok(())
}

/// Records the last failed attempt and ends the job. `false` when the claim was lost. Must run in a transaction.
pub(super) fn fail(
    connection: &mut Connection,
    job: Job,
    step: &PendingStep,
    error: &str,
    failure: Value,
    entry: &Entry,
) -> Result<bool, Error> {
    // Every transaction that locks a user and its deletion locks the user first.
    accounts::store::lock(connection, job.user)?;
    let failed = diesel::update(claimed!(job))
        .set((
            deletions::status.eq(DeletionStatus::Failed.name()),
            deletions::failure.eq(Some(failure)),
            deletions::finished.eq(now.into_sql::<Timestamptz>().nullable()),
            deletions::lease_until.eq(None::<DateTime<Utc>>),
        ))
        .execute(connection)?;
    if failed == 0 {
        return Ok(false);
    }
    entry.record(connection)?;
    record_failure(connection, job, step, error)?;
    Ok(true)
}

pub(super) fn record_failure(
    connection: &mut Connection,
    job: Job,
    step: &PendingStep,
    error: &str,
) -> Result<(), Error> {
    diesel::update(deletion_steps::table.find((job.lease.id, step.position)))
        .set((
            deletion_steps::attempts.eq(deletion_steps::attempts + 1),
            deletion_steps::last_error.eq(error),
        ))
        .execute(connection)?;
    Ok(())
}

/// The time until a job has this age; `None` when it has it already.
pub(super) fn time_until_age(
    connection: &mut Connection,
    job: Job,
    age: Duration,
) -> Result<Option<Duration>, Error> {
    let reached = deletions::created + interval(age);
    let (reached, clock) = deletions::table
        .find(job.lease.id)
        .select((reached, now.into_sql::<Timestamptz>()))
        .first::<(DateTime<Utc>, DateTime<Utc>)>(connection)?;
    Ok((reached - clock)
        .to_std()
        .ok()
        .filter(|wait| !wait.is_zero()))
}

pub(super) fn load_incarnation(connection: &mut Connection) -> Result<String, Error> {
    Ok(diesel::select(database_incarnation()).get_result(connection)?)
}

/// Deletes at most `batch` rows of a user from a table with this key, and returns how many were deleted.
pub(super) fn delete_batch(
    connection: &mut Connection,
    table: &str,
    key: &str,
    user: UserId,
    batch: i64,
) -> Result<usize, Error> {
    // The DSL has no LIMIT for DELETE.
    let statement = format!(
        "DELETE FROM {table} WHERE {key} IN (SELECT {key} FROM {table} WHERE user_id = $1 LIMIT $2)"
    );
    Ok(composed(statement, (), true)
        .bind::<Binary, _>(user)
        .bind::<BigInt, _>(batch)
        .execute(connection)?)
}
