//! The statement that decides tasks. It is raw SQL because it judges and changes many tasks in one round trip, together
//! with rows of several tables.

use audit_log::Entry;
use database::{Error, prepared};
use diesel::sql_types::{Array, BigInt, Binary, Bool, Integer, Jsonb, Nullable, Text};
use diesel::{PgConnection, QueryableByName, RunQueryDsl as _};
use telemetry::RequestContext;
use values::{DeliveryId, Names as _, TaskId, UserId};

use crate::audit::insert_entries;
use crate::columns::column;
use crate::status::TaskStatus;
use crate::tasks::{Grant, Task, granted, task_columns};

/// A decision to be made, if its grant gives the permission.
pub(super) struct NewDecision<'a> {
    /// Tells what became of it.
    pub(super) number: i32,
    pub(super) task: TaskId,
    /// The version of the task that it is about; `None` if any.
    pub(super) version: Option<i64>,
    pub(super) status: TaskStatus,
    /// The e-mail address of the person who decides; if it is `None` and a secret gives the permission, the approver's.
    pub(super) decided_by: Option<&'a str>,
    pub(super) comment: Option<&'a str>,
    pub(super) grant: Grant,
    /// The user who decides, and the incarnation of the token; `None` if a secret decides.
    pub(super) user: Option<(UserId, Option<&'a str>)>,
    pub(super) cause: &'a RequestContext,
    pub(super) entry: Entry,
}

/// A task after its decision.
#[derive(QueryableByName)]
pub(super) struct DecidedRow {
    /// The number of the decision.
    #[diesel(sql_type = Integer)]
    pub(super) number: i32,
    #[diesel(embed)]
    pub(super) task: Task,
    #[diesel(sql_type = Array<Binary>)]
    pub(super) deliveries: Vec<DeliveryId>,
    /// The host of each delivery.
    #[diesel(sql_type = Array<Text>)]
    pub(super) hosts: Vec<String>,
}

/// Decides the tasks that are pending and may be decided, and inserts the audit entries and a delivery for each webhook
/// that wants the decision. No webhook waits for their due dates any more, and the only mail about them is that of the
/// decision.
/// A task may occur once. Erased users decide nothing.
///
/// Nothing is decided about a task that another transaction is changing, or has changed since the statement began:
/// every change of a task and of its webhooks makes another version.
pub(super) fn decide(
    connection: &mut PgConnection,
    decisions: &[NewDecision<'_>],
) -> Result<Vec<DecidedRow>, Error> {
    let traces = decisions.iter().map(|d| d.cause.trace.to_string());
    let decide = prepared(DECIDE)
        .bind::<Array<Integer>, _>(column(decisions, |d| d.number))
        .bind::<Array<Binary>, _>(column(decisions, |d| d.task))
        .bind::<Array<Text>, _>(column(decisions, |d| d.status.name()))
        .bind::<Array<Bool>, _>(column(decisions, |d| d.grant.any_task))
        .bind::<Array<Nullable<Binary>>, _>(column(decisions, |d| d.grant.creator))
        .bind::<Array<Nullable<Text>>, _>(column(decisions, |d| d.grant.approver_key.as_deref()))
        .bind::<Array<Nullable<Text>>, _>(column(decisions, |d| d.grant.requester_key.as_deref()))
        .bind::<Array<Nullable<Binary>>, _>(column(decisions, |d| d.grant.approver_secret()))
        .bind::<Array<Nullable<Binary>>, _>(column(decisions, |d| d.grant.requester_secret()))
        .bind::<Array<Text>, _>(column(decisions, |d| d.cause.request_id.as_str()))
        .bind::<Array<Text>, _>(traces.collect::<Vec<_>>())
        .bind::<Array<Jsonb>, _>(column(decisions, |d| d.entry.to_json()))
        .bind::<Array<Nullable<Binary>>, _>(column(decisions, |d| d.user.map(|(id, _)| id)))
        .bind::<Array<Nullable<Text>>, _>(column(decisions, |d| d.user.and_then(|(_, of)| of)))
        .bind::<Array<Nullable<Text>>, _>(column(decisions, |d| d.decided_by))
        .bind::<Array<Nullable<Text>>, _>(column(decisions, |d| d.comment))
        .bind::<Array<Nullable<BigInt>>, _>(column(decisions, |d| d.version));
    Ok(decide.load(connection)?)
}

// `seen` is the row as the statement reads everything else; `task_states` is the row as it is when it is locked.
const DECIDE: &str = concat!(
    "WITH given AS (
    SELECT * FROM unnest($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17)
    AS given (
        number, task_id, decision, any_task, creator, approver_key, requester_key, approver_secret, requester_secret,
        request_id, traceparent, entry, user_id, incarnation, decided_by, comment, version)
), permitted AS (
    SELECT number, given.task_id, decision, request_id, traceparent, entry, given.comment AS new_comment,
        coalesce(given.decided_by, CASE WHEN given.approver_secret IS NOT NULL THEN approver END) AS person
    FROM given JOIN tasks ON tasks.id = ANY(ARRAY[given.task_id])
        JOIN task_states AS seen ON seen.task_id = ANY(ARRAY[given.task_id])
        JOIN task_states ON task_states.task_id = ANY(ARRAY[given.task_id])
    WHERE ",
    granted!(),
    " AND (given.version IS NULL OR tasks.content_version = given.version)
        AND (decision = 'approved' OR given.comment IS NOT NULL OR NOT comment_required)
        AND task_states.decision_made IS NULL AND task_states.version = seen.version
        AND (user_id IS NULL OR may_add_rows(user_id, incarnation))
    FOR NO KEY UPDATE OF task_states SKIP LOCKED
), decided AS (
    UPDATE task_states
    SET status = decision, decision_made = now(), decided_by = person, comment = new_comment, mtime = now(),
        version = task_states.version + 1
    FROM permitted
    WHERE task_states.task_id = ANY(ARRAY[permitted.task_id])
    RETURNING number, request_id, traceparent, entry, task_states.task_id, status, mtime, decision_made,
        task_states.decided_by, comment
), receivers AS (
    SELECT webhooks.id, webhooks.task_id, webhooks.host, request_id, traceparent, on_due, last_due,
        CASE decided.status WHEN 'approved' THEN on_approved ELSE on_rejected END AS is_called
    FROM decided JOIN webhooks ON webhooks.task_id = ANY(ARRAY[decided.task_id])
), delivered AS (
    INSERT INTO deliveries (id, webhook_id, task_id, host, request_id, traceparent)
    SELECT new_id(), id, task_id, host, request_id, traceparent FROM receivers WHERE is_called
    RETURNING id, task_id, host
), not_due AS (
    DELETE FROM due_dates WHERE webhook_id = ANY(ARRAY(SELECT id FROM receivers WHERE on_due))
), reopened AS (
    UPDATE webhooks SET status = 'pending', last_due = NULL
    WHERE id = ANY(ARRAY(SELECT id FROM receivers WHERE is_called AND last_due IS NOT NULL))
), mailed AS (
    SELECT decided.task_id FROM decided JOIN mailed_tasks ON mailed_tasks.task_id = ANY(ARRAY[decided.task_id])
), not_mailed AS (
    DELETE FROM task_mails WHERE task_id = ANY(ARRAY(SELECT task_id FROM mailed))
), mails AS (
    INSERT INTO task_mails (id, task_id, kind, recipient, due_at, next_attempt)
    SELECT new_id(), tasks.id, 'decided', mail_recipient(requester_key), now(), now()
    FROM mailed JOIN tasks ON tasks.id = ANY(ARRAY[mailed.task_id])
), recorded AS (",
    // What was decided on is recorded as the hash of the title, a NUL byte and the description, in UTF-8.
    insert_entries!(
        "SELECT jsonb_set(entry, '{detail}', coalesce(nullif(entry->'detail', 'null'), '{}') || jsonb_build_object(
                'version', content_version, 'contentSha256', encode(sha256(
                    convert_to(title, 'UTF8') || decode('00', 'hex') || convert_to(description, 'UTF8')), 'hex'))) AS entry
        FROM decided JOIN tasks ON tasks.id = ANY(ARRAY[decided.task_id])"
    ),
    ")
SELECT number, ",
    task_columns!(),
    ", delivery_ids AS deliveries, hosts
FROM decided AS task_states JOIN tasks ON tasks.id = ANY(ARRAY[task_states.task_id]) CROSS JOIN LATERAL (
    SELECT coalesce(array_agg(id), '{}') AS delivery_ids, coalesce(array_agg(host), '{}') AS hosts
    FROM delivered WHERE delivered.task_id = task_states.task_id
) AS own"
);
