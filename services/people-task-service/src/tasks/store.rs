pub(crate) mod erasure;
pub(crate) mod list;

use std::collections::{HashMap, HashSet};

use audit_log::Entry;
use chrono::{DateTime, Utc};
use database::{Error, prepared};
use diesel::prelude::*;
use diesel::sql_types::{Array, Binary, Integer, Jsonb, Nullable, Text, Timestamptz};
use serde_json::Value;
use sha2::{Digest as _, Sha256};
use values::{TaskId, UserId};

use crate::changed_users::resume_deliveries;
use crate::schema::tasks;
use crate::status::{Deciders, TaskStatus};

/// The columns of a [`Task`] in `tasks` and `task_states`. Statements name them, because `*` changes
/// with each column that a migration adds, and then a connection that has prepared the statement can no longer run it.
macro_rules! task_columns {
    () => {
        concat!(
            "tasks.id, tasks.creator, tasks.requester, tasks.approver, tasks.requester_key, tasks.approver_key, tasks.title, \
         tasks.description, tasks.decision_by, tasks.public, tasks.approver_secret, tasks.requester_secret, \
         tasks.created, tasks.comment_required, tasks.confirmation_required, tasks.metadata, tasks.content_version, \
         tasks.deciders, tasks.self_approval, tasks.reading_secret, task_states.version, ",
            crate::status::shown_status!(),
            " AS status, task_states.mtime, task_states.decision_made, task_states.decided_by, task_states.comment, \
         task_states.decided_via"
        )
    };
}

pub(crate) use task_columns;

/// A row of the table `tasks` with its row of `task_states`.
#[derive(Clone, QueryableByName)]
#[diesel(table_name = tasks)]
#[diesel(check_for_backend(diesel::pg::Pg))]
pub(crate) struct Task {
    pub(crate) id: TaskId,
    pub(crate) creator: UserId,
    /// E-mail addresses as they were given.
    pub(crate) requester: String,
    pub(crate) approver: String,
    /// The same in lower case, which relations compare.
    pub(crate) requester_key: String,
    pub(crate) approver_key: String,
    pub(crate) title: String,
    pub(crate) description: String,
    pub(crate) decision_by: Option<DateTime<Utc>>,
    pub(crate) public: bool,
    /// SHA-256 hashes of the secrets.
    pub(crate) approver_secret: Vec<u8>,
    pub(crate) requester_secret: Vec<u8>,
    pub(crate) created: DateTime<Utc>,
    pub(crate) comment_required: bool,
    /// The page asks for a second press before it sends a decision.
    pub(crate) confirmation_required: bool,
    /// What its creator keeps with it, as JSON.
    pub(crate) metadata: Option<String>,
    /// Counts the changes of what a person decides on: the title, the description, the due date, and who decides for
    /// whom. It begins at 1.
    pub(crate) content_version: i64,
    /// Who decides it, if not everyone who may by default.
    #[diesel(sql_type = Nullable<Text>)]
    pub(crate) deciders: Option<Deciders>,
    /// Whether who created or requested it may decide it.
    pub(crate) self_approval: bool,
    /// SHA-256 hash of the secret that only opens it, if it is restricted who decides.
    pub(crate) reading_secret: Option<Vec<u8>>,
    /// Counts the changes of the task, of its state and of its set of webhooks. What was judged by another version
    /// does not take effect.
    #[diesel(sql_type = Integer)]
    pub(crate) version: i32,
    #[diesel(sql_type = Text)]
    pub(crate) status: TaskStatus,
    #[diesel(sql_type = Timestamptz)]
    pub(crate) mtime: DateTime<Utc>,
    #[diesel(sql_type = Nullable<Timestamptz>)]
    pub(crate) decision_made: Option<DateTime<Utc>>,
    /// E-mail address of the person who decided; `None` if it was not confirmed.
    #[diesel(sql_type = Nullable<Text>)]
    pub(crate) decided_by: Option<String>,
    #[diesel(sql_type = Nullable<Text>)]
    pub(crate) comment: Option<String>,
    /// How it was decided; `None` for decisions of early versions.
    #[diesel(sql_type = Nullable<Jsonb>)]
    pub(crate) decided_via: Option<Value>,
}

impl Task {
    /// The hash of what is decided on: SHA-256 of the title, a NUL byte and the description, in UTF-8.
    pub(crate) fn content_hash(&self) -> String {
        let title = Sha256::new().chain_update(&self.title);
        let content = title.chain_update([0]).chain_update(&self.description);
        hex::encode(content.finalize())
    }
}

/// The changes of an edit. `None` leaves a column as it is.
#[derive(AsChangeset)]
#[diesel(table_name = tasks)]
pub(crate) struct Changes<'a> {
    pub(crate) title: Option<&'a str>,
    pub(crate) description: Option<&'a str>,
    pub(crate) decision_by: Option<Option<DateTime<Utc>>>,
    pub(crate) public: Option<bool>,
    pub(crate) comment_required: Option<bool>,
    pub(crate) confirmation_required: Option<bool>,
    pub(crate) metadata: Option<Option<&'a str>>,
    pub(crate) approver: Option<&'a str>,
    pub(crate) approver_key: Option<&'a str>,
    pub(crate) approver_secret: Option<Vec<u8>>,
    pub(crate) reading_secret: Option<Vec<u8>>,
    pub(crate) requester: Option<&'a str>,
    pub(crate) requester_key: Option<&'a str>,
    pub(crate) requester_secret: Option<Vec<u8>>,
}

pub(crate) fn find(connection: &mut PgConnection, id: TaskId) -> Result<Option<Task>, Error> {
    Ok(find_all(connection, &[id])?.remove(&id))
}

pub(crate) fn find_all(
    connection: &mut PgConnection,
    ids: &[TaskId],
) -> Result<HashMap<TaskId, Task>, Error> {
    let found: Vec<Task> = prepared(FIND_ALL)
        .bind::<Array<Binary>, _>(ids)
        .load(connection)?;
    Ok(found.into_iter().map(|task| (task.id, task)).collect())
}

/// Finds tasks by an array of their identifiers, with more columns.
macro_rules! find_tasks {
    ($more_columns:literal) => {
        concat!(
            "SELECT ",
            $crate::tasks::task_columns!(),
            $more_columns,
            " FROM unnest($1) AS given (id) JOIN tasks ON tasks.id = ANY(ARRAY[given.id])
    JOIN task_states ON task_states.task_id = ANY(ARRAY[given.id])"
        )
    };
}

pub(crate) use find_tasks;

const FIND_ALL: &str = find_tasks!("");

pub(crate) fn lock(connection: &mut PgConnection, id: TaskId) -> Result<Option<Task>, Error> {
    lock_all(connection, &[id])?;
    // A statement of its own, because the lock may have waited for a change.
    find(connection, id)
}

/// Locks tasks until the end of the transaction, in the order of their identifiers. Edits, webhook registrations and
/// decisions of one task run one after the other.
pub(crate) fn lock_all(connection: &mut PgConnection, ids: &[TaskId]) -> Result<(), Error> {
    prepared("SELECT FROM task_states WHERE task_id = ANY($1) ORDER BY task_id FOR NO KEY UPDATE")
        .bind::<Array<Binary>, _>(ids)
        .execute(connection)?;
    Ok(())
}

/// Locks those of these tasks that no other transaction has locked, as [`lock_all`] does, and returns them.
pub(crate) fn lock_free(
    connection: &mut PgConnection,
    ids: &[TaskId],
) -> Result<HashSet<TaskId>, Error> {
    let lock = prepared(
        "SELECT task_id FROM task_states WHERE task_id = ANY($1) FOR NO KEY UPDATE SKIP LOCKED",
    );
    let lock = lock.bind::<Array<Binary>, _>(ids).returning::<Binary>();
    let locked: Vec<TaskId> = lock.load(connection)?;
    Ok(locked.into_iter().collect())
}

/// Updates a locked task, with its audit entry. Its webhooks that want the event `due` wait for a new due date, or for none.
pub(crate) fn update(
    connection: &mut PgConnection,
    id: TaskId,
    changes: &Changes<'_>,
    entry: &Entry,
) -> Result<Option<Task>, Error> {
    diesel::update(tasks::table.find(id))
        .set(changes)
        .execute(connection)?;
    prepared(UPDATE_STATE)
        .bind::<Binary, _>(id)
        .execute(connection)?;
    if let Some(due_at) = changes.decision_by {
        prepared(DELETE_DUE_DATES)
            .bind::<Binary, _>(id)
            .execute(connection)?;
        if let Some(due_at) = due_at {
            prepared(INSERT_DUE_DATES)
                .bind::<Binary, _>(id)
                .bind::<Timestamptz, _>(due_at)
                .execute(connection)?;
        }
    }
    if changes.approver_key.or(changes.requester_key).is_some() {
        prepared(RESUME).bind::<Binary, _>(id).execute(connection)?;
    }
    entry.record(connection)?;
    find(connection, id)
}

const RESUME: &str = resume_deliveries!("task_id = $1 AND suspended_for IS NOT NULL");
/// It also makes another version of the task.
const UPDATE_STATE: &str = "UPDATE task_states SET version = version + 1, mtime = now(), public = tasks.public,
    decision_by = tasks.decision_by, approver_key = tasks.approver_key, requester_key = tasks.requester_key,
    title_key = lower(tasks.title)
    FROM tasks WHERE tasks.id = $1 AND task_id = $1";

const DELETE_DUE_DATES: &str = "DELETE FROM due_dates
    WHERE webhook_id = ANY(ARRAY(SELECT id FROM webhooks WHERE task_id = $1 AND on_due))";
/// A date that is not later than one of which a webhook was told already is no reason to tell it again.
const INSERT_DUE_DATES: &str = "INSERT INTO due_dates (webhook_id, due_at, creator)
    SELECT id, $2, coalesce(creator_of_lane(lane), (SELECT creator FROM tasks WHERE id = $1))
    FROM webhooks WHERE task_id = $1 AND on_due AND (last_due IS NULL OR last_due < $2)";
