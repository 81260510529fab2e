use std::time::Duration;

use audit_log::Entry;
use chrono::{DateTime, Utc};
use database::Error;
use diesel::dsl::now;
use diesel::prelude::*;
use diesel::sql_types::{BigInt, Bool, Nullable, Timestamptz};
use messaging::Message;
use serde_json::Value;
use telemetry::RequestContext;
use values::{DeletionId, UserId};

use crate::schema::{deletion_steps, deletions};
use crate::sql::interval;

const IN_PROGRESS: &str = "in-progress";

/// A job that this worker owns until its lease runs out.
#[derive(Debug, Clone, Copy)]
pub(super) struct Job {
    pub(super) id: DeletionId,
    pub(super) user: UserId,
    /// Every write names it, so that a worker that lost the job writes nothing.
    lease: i64,
}

/// A step that is not finished.
#[derive(Debug, Clone)]
pub(super) struct PendingStep {
    pub(super) position: i32,
    pub(super) name: String,
    /// Attempts that failed.
    pub(super) attempts: i32,
}

/// What an owner finds when it looks at its job.
#[derive(Debug, Clone)]
pub(super) enum Next {
    /// The job was cancelled, has ended, or belongs to another worker.
    NotOurs,
    /// This step is to be done.
    Step(PendingStep),
    /// No step is left.
    Nothing,
}

/// Takes a job that is due and that nobody owns. `None` when there is nothing to take.
///
/// An `orphaned` job's owner has probably died, so its lease counts no more. Should the owner be alive,
/// it writes nothing from here on, and at most one step, which does no harm, is done twice.
pub(super) fn claim(
    connection: &mut PgConnection,
    id: DeletionId,
    lease: Duration,
    orphaned: bool,
) -> Result<Option<Job>, Error> {
    let until = now.into_sql::<Timestamptz>() + interval(lease);
    let free = deletions::lease_until
        .is_null()
        .or(deletions::lease_until.le(now.into_sql::<Timestamptz>().nullable()))
        .or(orphaned.into_sql::<Bool>().nullable());
    let due = deletions::table
        .find(id)
        .filter(deletions::status.eq(IN_PROGRESS))
        .filter(deletions::next_attempt.le(now))
        .filter(free.assume_not_null());
    let claimed = diesel::update(due)
        .set((
            deletions::lease.eq(deletions::lease + 1),
            deletions::lease_until.eq(until.nullable()),
            deletions::wake_at.eq(until),
        ))
        .returning((deletions::user_id, deletions::lease))
        .get_result::<(UserId, i64)>(connection)
        .optional()?;
    Ok(claimed.map(|(user, lease)| Job { id, user, lease }))
}

/// Rows of a job only while it runs and is ours.
macro_rules! owned {
    ($job:expr) => {
        deletions::table
            .find($job.id)
            .filter(deletions::lease.eq($job.lease))
            .filter(deletions::status.eq(IN_PROGRESS))
    };
}

/// Renews the lease and reads what comes next, so that a cancelled job stops before its next step.
pub(super) fn renew(
    connection: &mut PgConnection,
    job: Job,
    lease: Duration,
) -> Result<Next, Error> {
    let until = now.into_sql::<Timestamptz>() + interval(lease);
    let renewed = diesel::update(owned!(job))
        .set((
            deletions::lease_until.eq(until.nullable()),
            deletions::wake_at.eq(until),
        ))
        .execute(connection)?;
    if renewed == 0 {
        return Ok(Next::NotOurs);
    }
    let step = deletion_steps::table
        .filter(deletion_steps::deletion_id.eq(job.id))
        .filter(deletion_steps::finished.is_null())
        .order(deletion_steps::position)
        .select((
            deletion_steps::position,
            deletion_steps::name,
            deletion_steps::attempts,
        ))
        .first::<(i32, String, i32)>(connection)
        .optional()?;
    Ok(step.map_or(Next::Nothing, |(position, name, attempts)| {
        Next::Step(PendingStep {
            position,
            name,
            attempts,
        })
    }))
}

/// Gives the job back, for any worker to go on after `pause`.
pub(super) fn release(
    connection: &mut PgConnection,
    job: Job,
    pause: Duration,
) -> Result<(), Error> {
    let due = now.into_sql::<Timestamptz>() + interval(pause);
    diesel::update(owned!(job))
        .set((
            deletions::lease_until.eq(None::<DateTime<Utc>>),
            deletions::next_attempt.eq(due),
            deletions::wake_at.eq(due),
        ))
        .execute(connection)?;
    Ok(())
}

/// Notes a step as finished. `false` when the job is no longer ours; then nothing was written.
///
/// Must run in a transaction.
pub(super) fn finish_step(
    connection: &mut PgConnection,
    job: Job,
    position: i32,
) -> Result<bool, Error> {
    let counted = diesel::update(owned!(job))
        .set(deletions::steps_done.eq(deletions::steps_done + 1))
        .execute(connection)?;
    if counted == 0 {
        return Ok(false);
    }
    mark_finished(connection, job, position)?;
    Ok(true)
}

/// Notes that a step is done.
pub(super) fn mark_finished(
    connection: &mut PgConnection,
    job: Job,
    position: i32,
) -> Result<(), Error> {
    diesel::update(deletion_steps::table.find((job.id, position)))
        .set(deletion_steps::finished.eq(now.into_sql::<Timestamptz>().nullable()))
        .execute(connection)?;
    Ok(())
}

/// Notes a failed attempt, and that the job is due again after `pause`.
///
/// Must run in a transaction.
pub(super) fn retry_step(
    connection: &mut PgConnection,
    job: Job,
    step: &PendingStep,
    error: &str,
    pause: Duration,
) -> Result<bool, Error> {
    let due = now.into_sql::<Timestamptz>() + interval(pause);
    let released = diesel::update(owned!(job))
        .set((
            deletions::lease_until.eq(None::<DateTime<Utc>>),
            deletions::next_attempt.eq(due),
            deletions::wake_at.eq(due),
        ))
        .execute(connection)?;
    note_failure(connection, job, step, error, released)
}

/// Notes the last failed attempt, and ends the job.
///
/// Must run in a transaction.
pub(super) fn fail(
    connection: &mut PgConnection,
    job: Job,
    step: &PendingStep,
    error: &str,
    failure: Value,
    entry: &Entry,
) -> Result<bool, Error> {
    let ended = diesel::update(owned!(job))
        .set((
            deletions::status.eq("failed"),
            deletions::failure.eq(Some(failure)),
            deletions::finished.eq(now.into_sql::<Timestamptz>().nullable()),
            deletions::lease_until.eq(None::<DateTime<Utc>>),
        ))
        .execute(connection)?;
    if ended > 0 {
        entry.record(connection)?;
    }
    note_failure(connection, job, step, error, ended)
}

fn note_failure(
    connection: &mut PgConnection,
    job: Job,
    step: &PendingStep,
    error: &str,
    owned: usize,
) -> Result<bool, Error> {
    if owned == 0 {
        return Ok(false);
    }
    diesel::update(deletion_steps::table.find((job.id, step.position)))
        .set((
            deletion_steps::attempts.eq(deletion_steps::attempts + 1),
            deletion_steps::last_error.eq(error),
        ))
        .execute(connection)?;
    Ok(true)
}

/// How long until a job has this age; `None` when it has it already.
pub(super) fn time_until_age(
    connection: &mut PgConnection,
    job: Job,
    age: Duration,
) -> Result<Option<Duration>, Error> {
    let reached = deletions::created + interval(age);
    let (reached, clock) = deletions::table
        .find(job.id)
        .select((reached, now.into_sql::<Timestamptz>()))
        .first::<(DateTime<Utc>, DateTime<Utc>)>(connection)?;
    Ok((reached - clock)
        .to_std()
        .ok()
        .filter(|wait| !wait.is_zero()))
}

/// Notes that the job is done, unless it is no longer ours. The feed of revocations reads it.
pub(super) fn complete(connection: &mut PgConnection, job: Job) -> Result<bool, Error> {
    // The feed of revocations is ordered by the transaction's number, which the DSL does not know.
    let transaction = diesel::dsl::sql::<Nullable<BigInt>>("pg_current_xact_id()::text::bigint");
    let completed = diesel::update(owned!(job))
        .set((
            deletions::status.eq("completed"),
            deletions::steps_done.eq(deletions::steps_done + 1),
            deletions::finished.eq(now.into_sql::<Timestamptz>().nullable()),
            deletions::lease_until.eq(None::<DateTime<Utc>>),
            deletions::epoch_transaction.eq(transaction),
        ))
        .execute(connection)?;
    Ok(completed > 0)
}

/// Takes at most `batch` jobs that are due for a wake-up, and leaves them alone for `pause`.
///
/// Must run in a transaction.
pub(super) fn due(
    connection: &mut PgConnection,
    batch: i64,
    pause: Duration,
) -> Result<Vec<Message>, Error> {
    let jobs = deletions::table
        .filter(deletions::status.eq(IN_PROGRESS))
        .filter(deletions::wake_at.le(now))
        .order(deletions::wake_at)
        .limit(batch)
        .select((deletions::id, deletions::request_id, deletions::traceparent))
        .for_update()
        .skip_locked()
        .load::<(DeletionId, String, String)>(connection)?;
    if jobs.is_empty() {
        return Ok(Vec::new());
    }
    let ids: Vec<_> = jobs.iter().map(|(id, _, _)| *id).collect();
    diesel::update(deletions::table.filter(deletions::id.eq_any(ids)))
        .set(deletions::wake_at.eq(now.into_sql::<Timestamptz>() + interval(pause)))
        .execute(connection)?;
    let messages = jobs.into_iter().map(|(id, request_id, traceparent)| {
        let context = RequestContext::continued(Some(&request_id), Some(&traceparent));
        Message::new(id, context)
    });
    Ok(messages.collect())
}
