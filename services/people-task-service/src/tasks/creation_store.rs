//! The statement that creates tasks. It is raw SQL because it inserts any number of rows into several tables in one
//! round trip, which diesel's query builder cannot express.

use std::collections::HashMap;

use audit_log::{Entry, insert_entries};
use auth::Caller;
use database::{Error, column, prepared};
use diesel::sql_types::{Array, Binary, Bool, Double, Jsonb, Nullable, Text, Timestamptz};
use diesel::{PgConnection, RunQueryDsl as _};
use values::{Names as _, TaskId};

use crate::mails::planned_reminders;
use crate::schema::allowed_users;
use crate::tasks::metadata::Metadata;
use crate::tasks::requests::{DecisionBy, NewTaskFields};
use crate::tasks::secrets::NewSecrets;
use crate::tasks::store::{Task, task_columns};

pub(crate) struct NewTask {
    pub(crate) id: TaskId,
    pub(crate) creator: Caller,
    pub(crate) fields: NewTaskFields,
    pub(crate) secrets: NewSecrets,
    pub(crate) entry: Entry,
}

impl NewTask {
    fn approver_seed(&self) -> Option<&[u8]> {
        let mail = self.secrets.mail.as_ref();
        mail.map(|mail| mail.approver_seed.as_bytes())
    }

    fn requester_seed(&self) -> Option<&[u8]> {
        let mail = self.secrets.mail.as_ref();
        mail.map(|mail| mail.requester_seed.as_bytes())
    }
}

/// Inserts tasks, with their audit entries and mails, except those of creators who were erased, and returns those inserted.
/// `reminders` says how many seconds before the due date approvers are reminded.
pub(crate) fn insert(
    connection: &mut PgConnection,
    tasks: &[&NewTask],
    reminders: &[f64],
) -> Result<HashMap<TaskId, Task>, Error> {
    if tasks.is_empty() {
        return Ok(HashMap::new());
    }
    let insert = prepared(INSERT)
        .bind::<Array<Binary>, _>(column(tasks, |task| task.id))
        .bind::<Array<Binary>, _>(column(tasks, |task| task.creator.id()))
        .bind::<Array<Text>, _>(column(tasks, |task| task.creator.incarnation()))
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
        .bind::<Array<Binary>, _>(column(tasks, |task| *task.secrets.hashes[0].as_bytes()))
        .bind::<Array<Binary>, _>(column(tasks, |task| *task.secrets.hashes[1].as_bytes()))
        .bind::<Array<Jsonb>, _>(column(tasks, |task| task.entry.to_json()))
        .bind::<Array<Bool>, _>(column(tasks, |task| task.fields.comment_required))
        .bind::<Array<Nullable<Text>>, _>(column(tasks, |task| {
            task.secrets.mail.map(|mail| mail.language.name())
        }))
        .bind::<Array<Nullable<Binary>>, _>(column(tasks, |task| task.approver_seed()))
        .bind::<Array<Nullable<Binary>>, _>(column(tasks, |task| task.requester_seed()))
        .bind::<Array<Double>, _>(reminders)
        .bind::<Array<Bool>, _>(column(tasks, |task| task.fields.confirmation_required))
        .bind::<Array<Nullable<Text>>, _>(column(tasks, |task| {
            task.fields.metadata.as_ref().map(Metadata::as_str)
        }))
        .bind::<Array<Nullable<Text>>, _>(column(tasks, |task| task.fields.deciders))
        .bind::<Array<Bool>, _>(column(tasks, |task| task.fields.self_approval))
        .bind::<Array<Nullable<Binary>>, _>(column(tasks, |task| {
            task.secrets.reading_hash.map(|hash| *hash.as_bytes())
        }))
        .bind::<Array<Nullable<Binary>>, _>(column(tasks, |task| task.creator.group_id()));
    let inserted: Vec<Task> = insert.load(connection)?;
    Ok(inserted.into_iter().map(|task| (task.id, task)).collect())
}

const INSERT: &str = concat!(
    "WITH ",
    allowed_users!("$2, $3"),
    ", given AS (
    SELECT * FROM unnest($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $20, $21,
        $22, $23, $24, $25)
        AS given (
        id, creator, incarnation, requester, requester_key, approver, approver_key, title, description, decision_by,
        public, approver_secret, requester_secret, entry, comment_required, language, approver_seed, requester_seed,
        confirmation_required, metadata, deciders, self_approval, reading_secret, account_group)
), inserted AS (
    INSERT INTO tasks (id, creator, requester, requester_key, approver, approver_key, title, description, decision_by,
        public, approver_secret, requester_secret, comment_required, confirmation_required, metadata,
        deciders, self_approval, reading_secret)
    SELECT id, creator, requester, requester_key, approver, approver_key, title, description, decision_by, public,
        approver_secret, requester_secret, comment_required, confirmation_required, metadata,
        deciders, self_approval, reading_secret
    FROM given WHERE (creator, incarnation) IN (SELECT * FROM allowed)
    RETURNING *
), undecided AS (
    INSERT INTO task_states (task_id, public, creator, created, decision_by, approver_key, requester_key, title_key,
        is_restricted)
    SELECT id, public, creator, created, decision_by, approver_key, requester_key, lower(title),
        deciders IS NOT NULL OR NOT self_approval
    FROM inserted
    RETURNING *
), mailed AS (
    INSERT INTO mailed_tasks (task_id, language, approver_seed, requester_seed, account_group)
    SELECT id, given.language, given.approver_seed, given.requester_seed, given.account_group
    FROM inserted JOIN given USING (id) WHERE given.language IS NOT NULL
    RETURNING task_id, account_group
), mails AS (
    INSERT INTO task_mails (id, task_id, creator, kind, recipient, due_at, next_attempt)
    SELECT new_id(), mailed.task_id, coalesce(mailed.account_group, inserted.creator), planned.kind,
        mail_recipient(inserted.approver_key), planned.due_at, planned.due_at
    FROM mailed JOIN inserted ON inserted.id = task_id CROSS JOIN LATERAL (
        SELECT 'asked' AS kind, now() AS due_at UNION ALL ",
    planned_reminders!("$19"),
    "
    ) AS planned
), recorded AS (",
    insert_entries!("SELECT given.entry FROM inserted JOIN given USING (id)"),
    ")
SELECT ",
    task_columns!(),
    " FROM inserted AS tasks JOIN undecided AS task_states ON task_states.task_id = tasks.id"
);
