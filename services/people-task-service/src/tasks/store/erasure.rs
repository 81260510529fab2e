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
const IN_ORDER: &str = " ORDER BY tasks.created, id";
/// Requested at a time when the user had the address, by the creation of the task; and by an edit, if it was created before
/// that time. A task is requested no earlier than it is created.
const OF_REQUESTED: [&str; 2] = [
    " AND created >= $4 AND created < $5 AND coalesce(requester_since, created) < $5 AND creator <> $1
    ORDER BY tasks.created, id",
    " AND requester_since >= $4 AND requester_since < $5 AND created < $4 AND creator <> $1
    ORDER BY requester_since, id",
];

/// The statement that finds the tasks that a user created, or those that the user requested and did not create. Each has the
/// order of its index. One statement for all would read the whole table when nothing is left.
fn find(owned: &str, rest: &str) -> String {
    format!("SELECT id, created FROM tasks WHERE {owned}{rest} LIMIT $2")
}

/// The same, which locks the states of the tasks until the end of the transaction, as [`lock`](super::lock) does, and leaves
/// out those that another transaction has locked, or has made another user's since the statement began.
pub(crate) fn find_free(owned: &str, rest: &str) -> String {
    // Raw SQL, because the builder cannot take an array from a subquery. A join would be planned for few rows. A condition
    // that `IS TRUE` is matched by no index.
    format!(
        "SELECT task_id AS id, created FROM task_states WHERE task_id = ANY(ARRAY(SELECT id FROM ({}) AS own)) \
         AND ({owned}) IS TRUE FOR UPDATE SKIP LOCKED",
        find(owned, rest)
    )
}

/// Loads tasks that the user created or requested, at most `limit`, with the statements of [`find`] or
/// [`find_free`].
pub(crate) fn load_tasks_of_user(
    connection: &mut PgConnection,
    statement: fn(&str, &str) -> String,
    user: UserId,
    addresses: &[RequesterAddress],
    limit: usize,
) -> Result<Vec<(TaskId, DateTime<Utc>)>, Error> {
    let rows = |found: usize| i64::try_from(limit.saturating_sub(found)).unwrap_or(i64::MAX);
    let mut tasks: Vec<(TaskId, DateTime<Utc>)> = composed(statement(CREATED, IN_ORDER), (), true)
        .bind::<Binary, _>(user)
        .bind::<BigInt, _>(rows(0))
        .returning::<(Binary, Timestamptz)>()
        .load(connection)?;
    let requested = addresses
        .iter()
        .flat_map(|address| OF_REQUESTED.map(|rest| (address, rest)));
    for (address, rest) in requested {
        if tasks.len() >= limit {
            break;
        }
        let requested: Vec<(TaskId, DateTime<Utc>)> =
            composed(statement(REQUESTED, rest), (), true)
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

#[cfg(test)]
mod tests {
    use diesel::connection::SimpleConnection as _;
    use diesel::prelude::*;
    use serde_json::json;
    use testkit::{TestDatabase, rows_read};
    use values::UserId;

    use super::{RequesterAddress, find, load_tasks_of_user};

    /// Tasks that an address requested ten days ago, and before the user had it, half of them by an edit. Two are the user's:
    /// one by its creation, and one by an edit.
    const FILL: &str = "
        SET search_path = people_task;
        ALTER TABLE tasks SET (autovacuum_enabled = false);
        INSERT INTO tasks (id, creator, requester, approver, requester_key, approver_key, title, description, public,
            approver_secret, requester_secret, created, requester_since)
        SELECT substr(sha256(n::text::bytea), 1, 12), decode(repeat('ee', 12), 'hex'), 'a@example.com', 'b@example.com',
            'a@example.com', 'b@example.com', 't', 'd', false, sha256(n::text::bytea), sha256(('r' || n)::bytea),
            now() - CASE WHEN n = 1 THEN interval '1 day' ELSE interval '10 days' END,
            now() - CASE WHEN n = 2 THEN interval '1 day' WHEN n % 2 = 0 THEN interval '9 days' END
        FROM generate_series(1, 2000) AS n;";

    #[test]
    fn an_erasure_does_not_read_what_the_address_requested_before_the_user_had_it() {
        let database = TestDatabase::people_task(crate::MIGRATIONS);
        database.admin().batch_execute(FILL).unwrap();
        let ago = |days| chrono::Utc::now() - chrono::TimeDelta::days(days);
        let address = json!({"email": "a@example.com", "since": ago(5), "until": ago(0)});
        let address: RequesterAddress = serde_json::from_value(address).unwrap();
        let found = database.people_task_connection().transaction(|connection| {
            let user = UserId::generate();
            let tasks = load_tasks_of_user(connection, find, user, &[address], 5_000).unwrap();
            Ok::<_, diesel::result::Error>((tasks.len(), rows_read(connection, "tasks")))
        });
        let (tasks, read) = found.unwrap();
        assert_eq!(tasks, 2);
        assert!(read < 200, "{read} rows and index entries");
    }
}
