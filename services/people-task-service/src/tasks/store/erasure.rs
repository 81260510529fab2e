//! The tasks of a user who is being erased.

use chrono::{DateTime, Utc};
use database::{Error, prepared};
use diesel::dsl::exists;
use diesel::prelude::*;
use diesel::sql_types::{BigInt, Binary, Text, Timestamptz};
use values::{EmailAddress, TaskId, UserId};

use crate::schema::tasks;

/// An address under which a user requested tasks.
#[derive(Debug, Clone)]
pub(crate) struct RequesterAddress {
    pub(crate) email: EmailAddress,
    /// Tasks that were created earlier are not the user's. `None` if all earlier ones are.
    pub(crate) since: Option<DateTime<Utc>>,
    /// Tasks that were created later are not the user's. `None` if the user still has the address.
    pub(crate) until: Option<DateTime<Utc>>,
}

impl RequesterAddress {
    /// The user's tasks were created at this time or later.
    fn start(&self) -> DateTime<Utc> {
        self.since.unwrap_or_default()
    }

    /// No task that was created at this time or later is the user's.
    fn end(&self) -> DateTime<Utc> {
        // Postgres cannot store the latest time of chrono.
        let far_future = || DateTime::from_timestamp(253_402_300_799, 0);
        self.until.or_else(far_future).unwrap_or_default()
    }
}

/// Locks the states of the oldest tasks that the user created or requested, at most `limit`, until the end of the
/// transaction, as [`lock`](super::lock) does. It skips those that another transaction has locked.
///
/// Each role has its own statement, in the order of its index. One statement for all of them would
/// read the whole table when nothing is left.
pub(crate) fn lock_tasks_of_user(
    connection: &mut PgConnection,
    user: UserId,
    addresses: &[RequesterAddress],
    limit: usize,
) -> Result<Vec<LockedTask>, Error> {
    let rows = |found: usize| i64::try_from(limit.saturating_sub(found)).unwrap_or(i64::MAX);
    let mut locked: Vec<LockedTask> = prepared(LOCK_CREATED)
        .bind::<Binary, _>(user)
        .bind::<BigInt, _>(rows(0))
        .load(connection)?;
    for address in addresses {
        if locked.len() >= limit {
            break;
        }
        // The first statement has already found what the user also created.
        let requested: Vec<LockedTask> = prepared(LOCK_REQUESTED)
            .bind::<Binary, _>(user)
            .bind::<BigInt, _>(rows(locked.len()))
            .bind::<Text, _>(address.email.normalized())
            .bind::<Timestamptz, _>(address.start())
            .bind::<Timestamptz, _>(address.end())
            .load(connection)?;
        locked.extend(requested);
    }
    Ok(locked)
}

/// A task whose state is locked.
#[derive(Debug, Clone, Copy, QueryableByName)]
pub(crate) struct LockedTask {
    #[diesel(sql_type = Binary, column_name = task_id)]
    pub(crate) id: TaskId,
    #[diesel(sql_type = Timestamptz)]
    pub(crate) created: DateTime<Utc>,
}

/// Raw SQL, because the builder cannot take an array from a subquery. A join would be planned for few rows.
macro_rules! lock_tasks {
    ($condition:literal) => {
        concat!(
            "SELECT task_id, created FROM task_states WHERE task_id = ANY(ARRAY(
                SELECT id FROM tasks WHERE ",
            $condition,
            " ORDER BY created, id LIMIT $2
            )) FOR UPDATE SKIP LOCKED"
        )
    };
}

const LOCK_CREATED: &str = lock_tasks!("creator = $1");

const LOCK_REQUESTED: &str =
    lock_tasks!("requester_key = $3 AND created >= $4 AND created < $5 AND creator <> $1");

/// Whether there are tasks that the user created or requested.
pub(crate) fn has_tasks_of_user(
    connection: &mut PgConnection,
    user: UserId,
    addresses: &[RequesterAddress],
) -> Result<bool, Error> {
    let created = tasks::table.filter(tasks::creator.eq(user));
    if diesel::select(exists(created)).get_result(connection)? {
        return Ok(true);
    }
    for address in addresses {
        let requested = tasks::table
            .filter(tasks::requester_key.eq(address.email.normalized()))
            .filter(tasks::created.ge(address.start()))
            .filter(tasks::created.lt(address.end()));
        if diesel::select(exists(requested)).get_result(connection)? {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Deletes tasks with their webhooks and deliveries.
pub(crate) fn delete(connection: &mut PgConnection, ids: &[TaskId]) -> Result<(), Error> {
    diesel::delete(tasks::table.filter(tasks::id.eq_any(ids))).execute(connection)?;
    Ok(())
}
