//! The statements on mails and on the wishes of recipients. Those are raw SQL that read and change rows of several tables, or
//! must follow an index: each uses the one that matches its condition, whatever Postgres knew of the table when it was
//! planned.

use std::time::Duration;

use chrono::{DateTime, Utc};
use database::{Connection, Error, interval, prepared};
use diesel::sql_types::{
    Array, BigInt, Binary, Bool, Double, Interval, Nullable, Text, Timestamptz,
};
use diesel::{QueryableByName, RunQueryDsl as _};
use serde::Serialize;
use sha2::{Digest as _, Sha256};
use values::{EmailAddress, MailId, TaskId, UserId};

use crate::mailing::Seed;
use crate::status::{TaskStatus, shown_status};
use crate::turns::TurnTable;

/// A query for the reminders of a task that are still to come. `$reminders` is the parameter with the seconds before
/// the due date, and `decision_by` the column with that date.
macro_rules! planned_reminders {
    ($reminders:literal) => {
        concat!(
            "SELECT CASE before WHEN 0 THEN 'due' ELSE 'reminder' END AS kind,
            decision_by - make_interval(secs => before) AS due_at
            FROM unnest(",
            $reminders,
            ") AS before WHERE decision_by - make_interval(secs => before) > now()"
        )
    };
}

pub(crate) use planned_reminders;

pub(crate) fn is_mailed(connection: &mut Connection, task: TaskId) -> Result<bool, Error> {
    let find = prepared("SELECT EXISTS (SELECT FROM mailed_tasks WHERE task_id = $1)");
    let find = find.bind::<Binary, _>(task).returning::<Bool>();
    Ok(find.get_result(connection)?)
}

/// Changes the mails of an edited task whose row is locked. A new approver, who has a new seed, is asked, and a new approver
/// or due date makes other reminders.
pub(crate) fn replan(
    connection: &mut Connection,
    task: TaskId,
    [approver_seed, requester_seed]: [Option<Seed>; 2],
    (has_new_due_date, by_creator): (bool, bool),
    reminders: &[f64],
) -> Result<(), Error> {
    let asks = approver_seed.is_some();
    if asks || requester_seed.is_some() {
        prepared(UPDATE_SEEDS)
            .bind::<Binary, _>(task)
            .bind::<Nullable<Binary>, _>(approver_seed.as_ref().map(Seed::as_bytes))
            .bind::<Nullable<Binary>, _>(requester_seed.as_ref().map(Seed::as_bytes))
            .execute(connection)?;
    }
    if asks || has_new_due_date {
        prepared(DELETE_PLANNED)
            .bind::<Binary, _>(task)
            .bind::<Bool, _>(asks)
            .execute(connection)?;
        prepared(INSERT)
            .bind::<Binary, _>(task)
            .bind::<Bool, _>(asks)
            .bind::<Array<Double>, _>(reminders)
            .bind::<Bool, _>(!by_creator)
            .execute(connection)?;
    }
    Ok(())
}

const UPDATE_SEEDS: &str = "UPDATE mailed_tasks
    SET approver_seed = coalesce($2, approver_seed), requester_seed = coalesce($3, requester_seed) WHERE task_id = $1";
const DELETE_PLANNED: &str =
    "DELETE FROM task_mails WHERE task_id = $1 AND (kind IN ('reminder', 'due') OR $2)";
const INSERT: &str = concat!(
    "INSERT INTO task_mails (id, task_id, creator, kind, recipient, due_at, next_attempt, is_of_another)
    SELECT new_id(), id, coalesce(account_group, creator), kind, mail_recipient(approver_key), due_at, due_at, $4
    FROM tasks JOIN mailed_tasks ON mailed_tasks.task_id = ANY(ARRAY[tasks.id]) CROSS JOIN LATERAL (
        SELECT 'asked' AS kind, now() AS due_at WHERE $2 UNION ALL ",
    planned_reminders!("$3"),
    "
    ) AS planned WHERE id = $1"
);

/// Mails whose task is gone have no creator.
pub(crate) const TURNS: TurnTable = TurnTable {
    name: "task_mails",
    due_at: "next_attempt",
};

#[derive(QueryableByName)]
pub(super) struct ClaimedMail {
    #[diesel(sql_type = Binary)]
    pub(super) id: MailId,
    #[diesel(sql_type = BigInt)]
    pub(super) lease: i64,
    #[diesel(sql_type = Text)]
    pub(super) kind: String,
    #[diesel(sql_type = Binary)]
    pub(super) recipient: Vec<u8>,
    /// Whether an edit of another user than the task's creator made it.
    #[diesel(sql_type = Bool)]
    pub(super) is_of_another: bool,
    /// Whether its time is longer ago than mails are sent late.
    #[diesel(sql_type = Bool)]
    pub(super) is_late: bool,
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
    #[diesel(sql_type = BigInt)]
    pub(super) content_version: i64,
    #[diesel(embed)]
    pub(super) task: MailedTask,
}

/// The task of a mail, as the mail tells of it.
#[derive(QueryableByName, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct MailedTask {
    #[diesel(sql_type = Binary)]
    pub(super) task_id: TaskId,
    /// The creator, or the group of accounts that counts as one with it.
    #[diesel(sql_type = Binary)]
    pub(super) creator: UserId,
    #[diesel(sql_type = Binary)]
    #[serde(skip)]
    pub(super) account: UserId,
    #[diesel(sql_type = Text)]
    requester: String,
    #[diesel(sql_type = Text)]
    approver: String,
    #[diesel(sql_type = Text)]
    title: String,
    /// The beginning of the description.
    #[diesel(sql_type = Text)]
    description: String,
    #[diesel(sql_type = Text)]
    pub(super) status: TaskStatus,
    #[diesel(sql_type = Nullable<Text>)]
    decided_by: Option<String>,
    #[diesel(sql_type = Nullable<Text>)]
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
    RETURNING id, lease, kind, recipient, is_of_another, due_at, task_id, creator, kind = 'decided' AS is_decision
)
SELECT claimed.id, lease, kind, recipient, is_of_another, due_at + $4 < now() AS is_late,
    coalesce(tasks.decision_by <= now(), false) AS is_due,
    EXISTS (SELECT FROM mail_opt_outs WHERE mail_opt_outs.recipient = ANY(ARRAY[claimed.recipient])) AS is_opted_out,
    recipient = mail_recipient(CASE WHEN is_decision THEN tasks.requester_key ELSE tasks.approver_key END) AS is_current,
    language, CASE WHEN is_decision THEN requester_seed ELSE approver_seed END AS seed,
    CASE WHEN is_decision THEN requester_secret ELSE approver_secret END AS secret,
    tasks.id AS task_id, claimed.creator, tasks.creator AS account, CASE WHEN is_decision THEN requester ELSE approver END AS address,
    requester, approver, title, left(description, 2000) AS description, tasks.decision_by, content_version, ",
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

/// Deletes mails that were sent, whichever claim sent them, or that are given up.
pub(super) fn delete(connection: &mut Connection, ids: &[MailId]) -> Result<(), Error> {
    prepared("DELETE FROM task_mails WHERE id = ANY($1)")
        .bind::<Array<Binary>, _>(ids)
        .execute(connection)?;
    Ok(())
}

/// Counts `each` for every time that something occurs in `counted`. Returns how many mails were counted for it in this hour.
pub(super) fn count(
    connection: &mut Connection,
    counted: &[[u8; 32]],
    each: i64,
) -> Result<Vec<(Vec<u8>, i64)>, Error> {
    let counted: Vec<_> = counted.iter().map(<[u8; 32]>::as_slice).collect();
    let count = prepared(COUNT)
        .bind::<Array<Binary>, _>(counted)
        .bind::<BigInt, _>(each);
    Ok(count.returning::<(Binary, BigInt)>().load(connection)?)
}

// In one order, so that two of them never wait for each other.
const COUNT: &str = "
INSERT INTO mail_counts AS earlier (hour, counted, mails)
SELECT date_trunc('hour', now()), counted, $2 * count(*) FROM unnest($1) AS counted GROUP BY counted ORDER BY counted
ON CONFLICT (hour, counted) DO UPDATE SET mails = earlier.mails + excluded.mails
RETURNING counted, mails";

/// The hash of an address, by which its mails, its count and its opt-out are found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct RecipientHash(pub(crate) [u8; 32]);

impl From<&EmailAddress> for RecipientHash {
    fn from(address: &EmailAddress) -> Self {
        Self(Sha256::digest(address.normalized()).into())
    }
}

/// How many seconds ago the mail that has been due for longest should have been claimed; 0 without one.
pub(crate) fn oldest_due(connection: &mut Connection) -> Result<f64, Error> {
    let oldest = prepared(OLDEST_DUE).returning::<Double>();
    Ok(oldest.get_result(connection)?)
}

const OLDEST_DUE: &str =
    "SELECT coalesce(greatest(extract(epoch FROM now() - next_attempt), 0), 0)::float8 AS seconds
    FROM (SELECT min(next_attempt) AS next_attempt FROM task_mails) AS oldest";

/// Lets a mail be claimed again after a pause, with the same number if it was an outage: only the attempts of workers that end
/// without a report are to be counted then. Nothing is written if the claim was lost.
pub(crate) fn postpone(
    connection: &mut Connection,
    id: MailId,
    lease: i64,
    pause: Duration,
    is_outage: bool,
) -> Result<(), Error> {
    prepared(POSTPONE)
        .bind::<Binary, _>(id)
        .bind::<BigInt, _>(lease)
        .bind::<Interval, _>(interval(pause))
        .bind::<Bool, _>(is_outage)
        .execute(connection)?;
    Ok(())
}

// A first claim would count for the limits again.
const POSTPONE: &str = "UPDATE task_mails SET next_attempt = now() + $3,
        lease = CASE WHEN $4 THEN greatest(lease - 1, 1) ELSE lease END
    WHERE id = $1 AND lease = $2";

/// Deletes at most `batch` mails that are to be sent to these addresses, except those that another transaction holds.
/// Returns how many, and whether there are more.
pub(crate) fn delete_of_recipients(
    connection: &mut Connection,
    addresses: &[&EmailAddress],
    batch: i64,
) -> Result<(usize, bool), Error> {
    let recipients = addresses
        .iter()
        .map(|address| RecipientHash::from(*address));
    let recipients: Vec<_> = recipients.map(|hash| hash.0).collect();
    let deleted = prepared(
        "DELETE FROM task_mails WHERE id = ANY(ARRAY(
            SELECT id FROM task_mails WHERE recipient = ANY($1) LIMIT $2 FOR UPDATE SKIP LOCKED))",
    )
    .bind::<Array<Binary>, _>(recipients.as_slice())
    .bind::<BigInt, _>(batch)
    .execute(connection)?;
    let more = prepared("SELECT EXISTS (SELECT FROM task_mails WHERE recipient = ANY($1))");
    let more = more
        .bind::<Array<Binary>, _>(recipients)
        .returning::<Bool>();
    Ok((deleted, more.get_result(connection)?))
}

/// Records that a recipient wants no reminders, or wants them again.
pub(crate) fn set_opt_out(
    connection: &mut Connection,
    recipient: RecipientHash,
    is_out: bool,
) -> Result<(), Error> {
    let set = if is_out {
        "INSERT INTO mail_opt_outs (recipient) VALUES ($1) ON CONFLICT DO NOTHING"
    } else {
        "DELETE FROM mail_opt_outs WHERE recipient = $1"
    };
    prepared(set)
        .bind::<Binary, _>(recipient.0)
        .execute(connection)?;
    Ok(())
}
