//! The statement that creates tasks. It is raw SQL because it inserts any number of rows into several tables in one
//! round trip, which diesel's query builder cannot express.

use audit_log::Entry;
use auth::Caller;
use chrono::{DateTime, Utc};
use database::{Error, prepared};
use diesel::sql_types::{Array, Binary, Bool, Jsonb, Nullable, Text, Timestamptz};
use diesel::{PgConnection, QueryableByName, RunQueryDsl as _};
use values::{Fingerprint, TaskId};

use crate::audit::insert_entries;
use crate::columns::column;
use crate::tasks::requests::{CreateTaskRequest, DecisionBy};

/// A task to be inserted.
pub(crate) struct NewTask {
    pub(crate) id: TaskId,
    pub(crate) creator: Caller,
    pub(crate) fields: CreateTaskRequest,
    /// The approver's and the requester's.
    pub(crate) secrets: [Fingerprint; 2],
    pub(crate) entry: Entry,
}

/// A task that was inserted.
#[derive(QueryableByName)]
pub(crate) struct Inserted {
    #[diesel(sql_type = Binary)]
    pub(crate) id: TaskId,
    #[diesel(sql_type = Timestamptz)]
    pub(crate) created: DateTime<Utc>,
}

/// Inserts tasks, with their audit entries, except those of creators who were erased.
pub(crate) fn insert(
    connection: &mut PgConnection,
    tasks: &[NewTask],
) -> Result<Vec<Inserted>, Error> {
    let insert = prepared(INSERT)
        .bind::<Array<Binary>, _>(column(tasks, |task| task.id))
        .bind::<Array<Binary>, _>(column(tasks, |task| task.creator.id()))
        .bind::<Array<Nullable<Text>>, _>(column(tasks, |task| task.creator.incarnation()))
        .bind::<Array<Text>, _>(column(tasks, |task| task.fields.requester.as_str()))
        .bind::<Array<Text>, _>(column(tasks, |task| task.fields.requester.normalized()))
        .bind::<Array<Text>, _>(column(tasks, |task| task.fields.approver.as_str()))
        .bind::<Array<Text>, _>(column(tasks, |task| task.fields.approver.normalized()))
        .bind::<Array<Text>, _>(column(tasks, |task| task.fields.title.as_str()))
        .bind::<Array<Text>, _>(column(tasks, |task| task.fields.description.as_str()))
        .bind::<Array<Nullable<Timestamptz>>, _>(column(tasks, |task| {
            task.fields.decision_by.map(DecisionBy::moment)
        }))
        .bind::<Array<Bool>, _>(column(tasks, |task| task.fields.public))
        .bind::<Array<Binary>, _>(column(tasks, |task| task.secrets[0].as_bytes().as_slice()))
        .bind::<Array<Binary>, _>(column(tasks, |task| task.secrets[1].as_bytes().as_slice()))
        .bind::<Array<Jsonb>, _>(column(tasks, |task| task.entry.to_json()))
        .bind::<Array<Bool>, _>(column(tasks, |task| task.fields.comment_required));
    Ok(insert.load(connection)?)
}

const INSERT: &str = concat!(
    "WITH given AS (
    SELECT * FROM unnest($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15) AS given (
        id, creator, incarnation, requester, requester_key, approver, approver_key, title, description, decision_by,
        public, approver_secret, requester_secret, entry, comment_required)
), inserted AS (
    INSERT INTO tasks (id, creator, requester, requester_key, approver, approver_key, title, description, decision_by,
        public, approver_secret, requester_secret, comment_required)
    SELECT id, creator, requester, requester_key, approver, approver_key, title, description, decision_by, public,
        approver_secret, requester_secret, comment_required
    FROM given WHERE may_add_rows(creator, incarnation)
    RETURNING id, public, creator, created, decision_by, approver_key, requester_key, lower(title) AS title_key
), undecided AS (
    INSERT INTO task_states (task_id, public, creator, created, decision_by, approver_key, requester_key, title_key)
    SELECT * FROM inserted
), recorded AS (",
    insert_entries!("SELECT given.entry FROM inserted JOIN given USING (id)"),
    ")
SELECT id, created FROM inserted"
);
