use chrono::{DateTime, Utc};
use database::{Error, composed, prepared};
use diesel::prelude::*;
use diesel::sql_types::{BigInt, Binary, Nullable, Text, Timestamptz};
use serde::Deserialize;
use values::{EmailAddress, TaskId, UserId};

use crate::schema::tasks;

/// An address under which a user requested tasks.
#[derive(Debug, Clone, Deserialize)]
pub(crate) struct RequesterAddress {
    pub(crate) email: EmailAddress,
    /// Tasks that were requested under it earlier, by their creation or an edit, are not the user's. An earlier version sends
    /// none.
    #[serde(default)]
    pub(crate) since: DateTime<Utc>,
    /// Tasks that were requested under it later are not the user's. It is [`values::Timestamp::MAX`] if the user still has
    /// the address.
    pub(crate) until: DateTime<Utc>,
}

/// What makes a task the user's, by columns that `tasks` and `task_states` have.
const CREATED: &str = "creator = $1";
const REQUESTED: &str = "requester_key = $3";
/// `created < $5` follows from the condition before it, and is for the index.
const OF_REQUESTED: &str = " AND coalesce(requester_since, created) >= $4
    AND coalesce(requester_since, created) < $5 AND created < $5 AND creator <> $1";

/// The statement that finds the tasks that a user created, or those that the user requested and did not create. Each has the
/// order of its index. One statement for both would read the whole table when nothing is left.
fn find(owned: &str, and: &str) -> String {
    format!("SELECT id, created FROM tasks WHERE {owned}{and} ORDER BY tasks.created, id LIMIT $2")
}

/// The same, which locks the states of the tasks until the end of the transaction, as [`lock`](super::lock) does, and leaves
/// out those that another transaction has locked, or has made another user's since the statement began.
pub(crate) fn find_free(owned: &str, and: &str) -> String {
    // Raw SQL, because the builder cannot take an array from a subquery. A join would be planned for few rows. A condition
    // that `IS TRUE` is matched by no index.
    format!(
        "SELECT task_id AS id, created FROM task_states WHERE task_id = ANY(ARRAY(SELECT id FROM ({}) AS own)) \
         AND ({owned}) IS TRUE FOR UPDATE SKIP LOCKED",
        find(owned, and)
    )
}

/// Loads the oldest tasks that the user created or requested, at most `limit`, with the statements of [`find`] or
/// [`find_free`].
pub(crate) fn load_tasks_of_user(
    connection: &mut PgConnection,
    statement: fn(&str, &str) -> String,
    user: UserId,
    addresses: &[RequesterAddress],
    limit: usize,
) -> Result<Vec<(TaskId, DateTime<Utc>)>, Error> {
    let rows = |found: usize| i64::try_from(limit.saturating_sub(found)).unwrap_or(i64::MAX);
    let mut tasks: Vec<(TaskId, DateTime<Utc>)> = composed(statement(CREATED, ""), (), true)
        .bind::<Binary, _>(user)
        .bind::<BigInt, _>(rows(0))
        .returning::<(Binary, Timestamptz)>()
        .load(connection)?;
    for address in addresses {
        if tasks.len() >= limit {
            break;
        }
        let requested: Vec<(TaskId, DateTime<Utc>)> =
            composed(statement(REQUESTED, OF_REQUESTED), (), true)
                .bind::<Binary, _>(user)
                .bind::<BigInt, _>(rows(tasks.len()))
                .bind::<Text, _>(address.email.normalized())
                .bind::<Timestamptz, _>(address.since)
                .bind::<Timestamptz, _>(address.until)
                .returning::<(Binary, Timestamptz)>()
                .load(connection)?;
        tasks.extend(requested);
    }
    Ok(tasks)
}

pub(crate) fn has_tasks_of_user(
    connection: &mut PgConnection,
    user: UserId,
    addresses: &[RequesterAddress],
) -> Result<bool, Error> {
    Ok(!load_tasks_of_user(connection, find, user, addresses, 1)?.is_empty())
}

/// Deletes tasks with their webhooks and deliveries, and returns their number.
pub(crate) fn delete(connection: &mut PgConnection, ids: &[TaskId]) -> Result<usize, Error> {
    Ok(diesel::delete(tasks::table.filter(tasks::id.eq_any(ids))).execute(connection)?)
}

/// Keeps tokens of this incarnation from adding rows for a user who is being erased as of a time, unless it is known that
/// the user was active later. It waits for transactions that are adding some. Must run in a transaction.
pub(crate) fn record_erased_user(
    connection: &mut PgConnection,
    user: UserId,
    incarnation: &str,
    changed: Option<DateTime<Utc>>,
) -> Result<(), Error> {
    prepared("SELECT pg_advisory_xact_lock(erasure_lock($1))")
        .bind::<Binary, _>(user)
        .execute(connection)?;
    prepared(RECORD_ERASED_USER)
        .bind::<Binary, _>(user)
        .bind::<Text, _>(incarnation)
        .bind::<Nullable<Timestamptz>, _>(changed)
        .execute(connection)?;
    Ok(())
}

const RECORD_ERASED_USER: &str = "INSERT INTO erased_users AS known (pseudonym, incarnation, changed)
    SELECT substring(sha256($1) FOR 12), $2, $3 WHERE NOT EXISTS (
        SELECT FROM changed_users WHERE id = $1 AND is_active AND changed_users.changed > $3)
    ON CONFLICT (pseudonym, incarnation) DO UPDATE SET changed = greatest(known.changed, excluded.changed)";

/// Whether the user is still one who is being erased. A report that ends this waits for the transaction.
pub(crate) fn is_being_erased(
    connection: &mut PgConnection,
    user: UserId,
    incarnation: &str,
) -> Result<bool, Error> {
    let lock = prepared(
        "SELECT FROM erased_users WHERE pseudonym = substring(sha256($1) FOR 12) AND incarnation = $2 FOR KEY SHARE",
    );
    let found = lock.bind::<Binary, _>(user).bind::<Text, _>(incarnation);
    Ok(found.execute(connection)? > 0)
}
