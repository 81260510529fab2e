//! The statements that claim mails, in raw SQL because they read and change rows of several tables.

use std::time::Duration;

use chrono::{DateTime, Utc};
use database::{Connection, Error, interval, prepared};
use diesel::sql_types::{Array, BigInt, Binary, Bool, Interval, Nullable, Text, Timestamptz};
use diesel::{ExpressionMethods as _, QueryDsl as _, QueryableByName, RunQueryDsl as _};
use serde::Serialize;
use values::{MailId, TaskId, UserId};

use crate::schema::{task_mails, task_states};
use crate::status::{TaskStatus, shown_status};

/// A mail that was claimed.
#[derive(QueryableByName)]
#[diesel(table_name = task_mails)]
pub(super) struct ClaimedMail {
    pub(super) id: MailId,
    pub(super) lease: i64,
    pub(super) kind: String,
    pub(super) recipient: Vec<u8>,
    /// Whether its time is longer ago than mails are sent late.
    #[diesel(sql_type = Bool)]
    pub(super) is_late: bool,
    /// Whether the due date is over.
    #[diesel(sql_type = Bool)]
    pub(super) is_due: bool,
    #[diesel(sql_type = Bool)]
    pub(super) is_opted_out: bool,
    /// Whether the recipient is still the approver or, for a decision, the requester.
    #[diesel(sql_type = Bool)]
    pub(super) is_current: bool,
    #[diesel(sql_type = Text)]
    pub(super) language: String,
    #[diesel(sql_type = Binary)]
    pub(super) seed: Vec<u8>,
    /// The hash of the recipient's secret.
    #[diesel(sql_type = Binary)]
    pub(super) secret: Vec<u8>,
    #[diesel(sql_type = Text)]
    pub(super) address: String,
    #[diesel(sql_type = Nullable<Timestamptz>)]
    pub(super) decision_by: Option<DateTime<Utc>>,
    #[diesel(embed)]
    pub(super) task: MailedTask,
}

/// The task of a mail, as the mail tells of it.
#[derive(QueryableByName, Serialize)]
#[diesel(table_name = task_states)]
#[serde(rename_all = "camelCase")]
pub(super) struct MailedTask {
    pub(super) task_id: TaskId,
    pub(super) creator: UserId,
    #[diesel(sql_type = Text)]
    requester: String,
    #[diesel(sql_type = Text)]
    approver: String,
    #[diesel(sql_type = Text)]
    title: String,
    /// The beginning of the description.
    #[diesel(sql_type = Text)]
    description: String,
    pub(super) status: TaskStatus,
    decided_by: Option<String>,
    comment: Option<String>,
}

/// Claims those mails of each creator that have been due for longest, at most `limit`, for the length of `lease`.
///
/// Must run in a transaction with what is done about those that are not sent.
pub(super) fn claim(
    connection: &mut Connection,
    creators: &[UserId],
    limit: usize,
    lease: Duration,
    max_delay: Duration,
) -> Result<Vec<ClaimedMail>, Error> {
    let claim = prepared(CLAIM)
        .bind::<Array<Binary>, _>(creators)
        .bind::<BigInt, _>(i64::try_from(limit).unwrap_or(i64::MAX))
        .bind::<Interval, _>(interval(lease))
        .bind::<Interval, _>(interval(max_delay));
    Ok(claim.load(connection)?)
}

// Mails whose task is gone are left to the retention of old rows. It waits for no lock. Only the index of creators matches
// how the mails of one are found, so the others are not read even if that index was empty when this was planned.
const CLAIM: &str = concat!(
    "
WITH due AS (
    SELECT first.id FROM unnest($1) AS turn (creator) CROSS JOIN LATERAL (
        SELECT id, next_attempt FROM task_mails
        WHERE task_mails.creator >= turn.creator AND task_mails.creator <= turn.creator
        ORDER BY task_mails.creator, next_attempt LIMIT $2 FOR UPDATE SKIP LOCKED
    ) AS first WHERE first.next_attempt <= now()
), claimed AS (
    UPDATE task_mails SET lease = lease + 1, next_attempt = now() + $3
    WHERE id = ANY(ARRAY(SELECT id FROM due))
    RETURNING id, lease, kind, recipient, due_at, task_id, kind = 'decided' AS is_decision
)
SELECT claimed.id, lease, kind, recipient, due_at + $4 < now() AS is_late,
    coalesce(tasks.decision_by <= now(), false) AS is_due,
    EXISTS (SELECT FROM mail_opt_outs WHERE mail_opt_outs.recipient = claimed.recipient) AS is_opted_out,
    recipient = mail_recipient(CASE WHEN is_decision THEN tasks.requester_key ELSE tasks.approver_key END) AS is_current,
    language, CASE WHEN is_decision THEN requester_seed ELSE approver_seed END AS seed,
    CASE WHEN is_decision THEN requester_secret ELSE approver_secret END AS secret,
    tasks.id AS task_id, tasks.creator, CASE WHEN is_decision THEN requester ELSE approver END AS address,
    requester, approver, title, left(description, 2000) AS description, tasks.decision_by, ",
    shown_status!(),
    " AS status, decided_by, comment
FROM claimed JOIN mailed_tasks ON mailed_tasks.task_id = ANY(ARRAY[claimed.task_id])
    JOIN tasks ON tasks.id = ANY(ARRAY[claimed.task_id])
    JOIN task_states ON task_states.task_id = ANY(ARRAY[claimed.task_id])"
);

/// Lets claimed mails wait for the next hour, with their attempts and their counts beginning again.
pub(super) fn delay(connection: &mut Connection, ids: &[MailId]) -> Result<(), Error> {
    prepared(
        "UPDATE task_mails SET lease = 0,
            next_attempt = date_trunc('hour', now()) + interval '1 hour' + random() * interval '1 minute'
        WHERE id = ANY($1)",
    )
    .bind::<Array<Binary>, _>(ids)
    .execute(connection)?;
    Ok(())
}

pub(super) fn delete(connection: &mut Connection, ids: &[MailId]) -> Result<(), Error> {
    diesel::delete(task_mails::table.filter(task_mails::id.eq_any(ids))).execute(connection)?;
    Ok(())
}

/// Counts mails, each once for every recipient or creator that it counts for. Returns how many were counted for each of
/// these in this hour.
pub(super) fn count(
    connection: &mut Connection,
    counted: &[[u8; 32]],
) -> Result<Vec<(Vec<u8>, i64)>, Error> {
    let counted: Vec<_> = counted.iter().map(<[u8; 32]>::as_slice).collect();
    let count = prepared(COUNT).bind::<Array<Binary>, _>(counted);
    Ok(count.returning::<(Binary, BigInt)>().load(connection)?)
}

// In one order, so that two of them never wait for each other.
const COUNT: &str = "
INSERT INTO mail_counts AS earlier (hour, counted, mails)
SELECT date_trunc('hour', now()), counted, count(*) FROM unnest($1) AS counted GROUP BY counted ORDER BY counted
ON CONFLICT (hour, counted) DO UPDATE SET mails = earlier.mails + excluded.mails
RETURNING counted, mails";
