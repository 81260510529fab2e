//! The statement that decides tasks. It is raw SQL because it changes many tasks in one round trip, together with rows of
//! several tables.

use std::collections::HashMap;

use audit_log::{Entry, insert_entries};
use chrono::{DateTime, Utc};
use database::{Error, column, prepared};
use diesel::sql_types::{Array, BigInt, Binary, Bool, Integer, Jsonb, Nullable, Text, Timestamptz};
use diesel::{PgConnection, Queryable, QueryableByName, RunQueryDsl as _};
use serde::Serialize;
use serde_json::Value;
use telemetry::RequestContext;
use utoipa::ToSchema;
use values::{DeliveryId, Names as _, TaskId, UserId};

use crate::schema::allowed_users;
use crate::status::TaskStatus;
use crate::tasks::{Task, find_tasks};

#[derive(QueryableByName)]
struct FoundTask {
    #[diesel(embed)]
    task: Task,
    #[diesel(sql_type = Bool)]
    has_reminders: bool,
}

/// Finds tasks, and whether any of them has reminders: mails, or webhooks that are called at its due date. What has none when
/// it is read has none while it has this version.
pub(super) fn find_all(
    connection: &mut PgConnection,
    tasks: &[TaskId],
) -> Result<(HashMap<TaskId, Task>, bool), Error> {
    let find = prepared(FIND_ALL).bind::<Array<Binary>, _>(tasks);
    let found: Vec<FoundTask> = find.load(connection)?;
    let have_reminders = found.iter().any(|found| found.has_reminders);
    let tasks = found.into_iter().map(|found| (found.task.id, found.task));
    Ok((tasks.collect(), have_reminders))
}

const FIND_ALL: &str = find_tasks!(
    ", EXISTS (SELECT FROM mailed_tasks WHERE mailed_tasks.task_id = ANY(ARRAY[given.id]))
        OR EXISTS (SELECT FROM webhooks WHERE webhooks.task_id = ANY(ARRAY[given.id]) AND on_due) AS has_reminders"
);

pub(super) struct NewDecision<'a> {
    pub(super) task: TaskId,
    /// The version of the task by which it was judged.
    pub(super) version: i32,
    pub(super) status: TaskStatus,
    /// The e-mail address of the person who decides.
    pub(super) decided_by: Option<&'a str>,
    pub(super) comment: Option<&'a str>,
    pub(super) via: Value,
    /// The user who decides, and the incarnation of the token; `None` if a secret decides.
    pub(super) user: Option<(UserId, &'a str)>,
    pub(super) cause: &'a RequestContext,
    pub(super) entry: Entry,
}

type Columns = (
    Binary,
    Timestamptz,
    Nullable<Text>,
    Jsonb,
    Array<Binary>,
    Array<Text>,
);

/// What the database adds to a decision: the [`Columns`] of [`DECIDE`].
#[derive(Queryable)]
pub(super) struct DecidedRow {
    task_id: TaskId,
    pub(super) decision_made: DateTime<Utc>,
    pub(super) decided_by: Option<String>,
    pub(super) decided_via: Value,
    pub(super) deliveries: Vec<DeliveryId>,
    /// The lane of each delivery.
    pub(super) lanes: Vec<String>,
}

/// Decides tasks, each at most once, and inserts the audit entries and a delivery for each webhook that wants the
/// decision. No webhook waits for their due dates any more, and the only mail about them is that of the decision. When a task
/// is withdrawn, deliveries of due dates that wait are not sent either, and the approver gets a mail unless the one that asks was
/// still waiting.
///
/// `have_reminders` is what [`find_all`] returned for the tasks.
///
/// Nothing is decided about a task that another transaction is changing, or has changed since it was judged: every change
/// of a task and of its webhooks makes another version. Erased users decide nothing.
pub(super) fn decide(
    connection: &mut PgConnection,
    decisions: &[NewDecision<'_>],
    have_reminders: bool,
) -> Result<HashMap<TaskId, DecidedRow>, Error> {
    if decisions.is_empty() {
        return Ok(HashMap::new());
    }
    let is_cancelled = |d: &NewDecision<'_>| d.status == TaskStatus::Cancelled;
    let statement = if have_reminders || decisions.iter().any(is_cancelled) {
        DECIDE_AND_END_REMINDERS
    } else {
        DECIDE
    };
    let traces = decisions.iter().map(|d| d.cause.trace.to_string());
    let decided: Vec<DecidedRow> = prepared(statement)
        .bind::<Array<Binary>, _>(column(decisions, |d| d.task))
        .bind::<Array<Integer>, _>(column(decisions, |d| d.version))
        .bind::<Array<Text>, _>(column(decisions, |d| d.status.name()))
        .bind::<Array<Nullable<Text>>, _>(column(decisions, |d| d.decided_by))
        .bind::<Array<Nullable<Text>>, _>(column(decisions, |d| d.comment))
        .bind::<Array<Nullable<Binary>>, _>(column(decisions, |d| d.user.map(|(id, _)| id)))
        .bind::<Array<Nullable<Text>>, _>(column(decisions, |d| d.user.map(|(_, of)| of)))
        .bind::<Array<Text>, _>(column(decisions, |d| d.cause.request_id.as_str()))
        .bind::<Array<Text>, _>(traces.collect::<Vec<_>>())
        .bind::<Array<Jsonb>, _>(column(decisions, |d| d.entry.to_json()))
        .bind::<Array<Jsonb>, _>(column(decisions, |d| d.via.clone()))
        .returning::<Columns>()
        .load(connection)?;
    let decided = decided.into_iter().map(|row| (row.task_id, row));
    Ok(decided.collect())
}

// Rows that are locked are skipped, so no decision waits for a change of another task, nor for what is handling a due date or
// a mail: it finds the task decided, now or the next time. Two are waited for: a webhook that was told of a due date, because
// its status would stay that of the due date, and the delivery of a due date whose task is withdrawn, because it would still be
// sent. A transaction that holds one of those without its task waits for no other row.
//
// Workers of earlier versions would send a withdrawal as a rejection, so it is hidden from them, as deliveries with options
// are.
macro_rules! decide {
    ($reminders:literal) => {
        concat!(
            "WITH ",
            allowed_users!("$6, $7"),
            ", judged AS (
    SELECT given.*
    FROM unnest($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11) AS given (
            task_id, version, decision, person, new_comment, user_id, incarnation, request_id, traceparent, entry, via)
        JOIN task_states ON task_states.task_id = ANY(ARRAY[given.task_id])
    WHERE task_states.version = given.version
        AND (user_id IS NULL OR (user_id, incarnation) IN (SELECT * FROM allowed))
    FOR NO KEY UPDATE OF task_states SKIP LOCKED
), decided AS (
    UPDATE task_states
    SET status = CASE decision WHEN 'cancelled' THEN 'rejected' ELSE decision END, cancelled = (decision = 'cancelled'),
        decision_made = now(), decided_by = person, comment = new_comment, decided_via = via, mtime = now(),
        version = task_states.version + 1
    FROM judged
    WHERE task_states.task_id = ANY(ARRAY[judged.task_id])
    RETURNING task_states.task_id, creator, decision, decision_made, decided_by, decided_via, requester_key, approver_key,
        request_id, traceparent, entry
), receivers AS (
    SELECT webhooks.id, webhooks.task_id, webhooks.host, webhooks.lane, request_id, traceparent, on_due, last_due,
        options IS NOT NULL OR decision = 'cancelled' AS has_options,
        CASE decision WHEN 'approved' THEN on_approved WHEN 'rejected' THEN on_rejected ELSE on_cancelled END AS is_called
    FROM decided JOIN webhooks ON webhooks.task_id = ANY(ARRAY[decided.task_id])
), delivered AS (
    INSERT INTO deliveries (id, webhook_id, task_id, host, lane, request_id, traceparent, has_options)
    SELECT new_id(), id, task_id, host, coalesce(lane, ''), request_id, traceparent, has_options
    FROM receivers WHERE is_called
    RETURNING id, task_id, lane
)",
            $reminders,
            ", recorded AS (",
            insert_entries!("SELECT entry FROM decided"),
            ")
SELECT task_id, decision_made, decided_by, decided_via, delivery_ids AS deliveries, lanes
FROM decided CROSS JOIN LATERAL (
    SELECT coalesce(array_agg(id), '{}') AS delivery_ids, coalesce(array_agg(lane), '{}') AS lanes
    FROM delivered WHERE delivered.task_id = decided.task_id
) AS own"
        )
    };
}

const DECIDE: &str = decide!("");

const DECIDE_AND_END_REMINDERS: &str = decide!(
    ", not_sent AS (
    DELETE FROM deliveries WHERE id = ANY(ARRAY(
        SELECT id FROM deliveries
        WHERE task_id = ANY(ARRAY(SELECT task_id FROM decided WHERE decision = 'cancelled')) AND due_at IS NOT NULL
        FOR UPDATE))
), not_due AS (
    DELETE FROM due_dates WHERE webhook_id = ANY(ARRAY(
        SELECT webhook_id FROM due_dates
        WHERE webhook_id = ANY(ARRAY(SELECT id FROM receivers WHERE on_due)) FOR UPDATE SKIP LOCKED))
), reopened AS (
    UPDATE webhooks SET status = 'pending', last_due = NULL
    WHERE id = ANY(ARRAY(SELECT id FROM receivers WHERE is_called AND last_due IS NOT NULL))
), mailed AS (
    SELECT decided.task_id, coalesce(account_group, creator) AS creator, requester_key, approver_key, decision
    FROM decided JOIN mailed_tasks ON mailed_tasks.task_id = ANY(ARRAY[decided.task_id])
), not_mailed AS (
    DELETE FROM task_mails WHERE id = ANY(ARRAY(
        SELECT id FROM task_mails WHERE task_id = ANY(ARRAY(SELECT task_id FROM mailed)) FOR UPDATE SKIP LOCKED))
    RETURNING task_id, kind, lease
), mails AS (
    INSERT INTO task_mails (id, task_id, creator, kind, recipient, due_at, next_attempt)
    SELECT new_id(), task_id, creator, 'decided', mail_recipient(requester_key), now(), now() FROM mailed
    WHERE decision <> 'cancelled'
    UNION ALL
    SELECT new_id(), task_id, creator, 'cancelled', mail_recipient(approver_key), now(), now() FROM mailed
    WHERE decision = 'cancelled' AND NOT EXISTS (
        SELECT FROM not_mailed WHERE not_mailed.task_id = mailed.task_id AND kind = 'asked' AND lease = 0)
)"
);

/// Who hears of it when a task is withdrawn.
#[derive(QueryableByName, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct CancelPreview {
    /// How many of its webhooks are called: those whose `events` have `cancelled`.
    #[diesel(sql_type = BigInt)]
    #[schema(minimum = 0)]
    webhooks_told: i64,
    /// How many hear nothing, so that flows which wait for them wait for ever.
    #[diesel(sql_type = BigInt)]
    #[schema(minimum = 0)]
    webhooks_not_told: i64,
}

pub(super) fn preview_cancel(
    connection: &mut PgConnection,
    task: TaskId,
) -> Result<CancelPreview, Error> {
    let count = prepared(
        "SELECT count(*) FILTER (WHERE on_cancelled) AS webhooks_told,
            count(*) FILTER (WHERE NOT on_cancelled) AS webhooks_not_told
        FROM webhooks WHERE task_id = $1",
    );
    Ok(count.bind::<Binary, _>(task).get_result(connection)?)
}
