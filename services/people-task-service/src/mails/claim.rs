use std::collections::{HashMap, HashSet};
use std::time::Duration;

use auth::MailKeys;
use auth::mails::{DueMails, MailKind, Report, Room};
use database::{Connection, Database, Error, transaction};
use serde::Serialize;
use sha2::{Digest as _, Sha256};
use values::{Language, MailId, Names as _, Secret, Timestamp, UserId};

use crate::mailing::{Mailing, Part, Seed};
use crate::mails::store::{self, ClaimedMail, MailedTask, RecipientHash};
use crate::mails::{fits, is_reminder, unsubscribe};
use crate::status::TaskStatus;
use crate::turns::{Turn, Turns};

/// How long the notification worker may take to send a mail and report it. It stops trying sooner.
const LEASE: Duration = Duration::from_secs(60);
/// Mails are sent this late at most, so that a backup that is restored, or a mail server that was unavailable for
/// days, sends no old ones.
const MAX_DELAY: Duration = Duration::from_secs(24 * 3_600);
/// How many mails one call claims at most.
const MAX_CLAIMED: usize = 100;

values::names! {
    /// Why a mail is not sent, with the name in metrics.
    pub(super) enum DropReason {
        /// The task was decided, or changed so that the mail would be wrong.
        Superseded = "superseded",
        Late = "late",
        OptedOut = "opted-out",
        /// The recipient got too many mails, or the creator caused too many.
        Limited = "limited",
        /// The secret was made with a key that is no longer known.
        NoKey = "no-key",
    }
}

/// A mail that is to be sent now, with everything that it says. It contains secrets and personal data.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct DueMail {
    pub(super) id: MailId,
    pub(super) attempt: i64,
    pub(super) kind: MailKind,
    pub(super) language: &'static str,
    #[serde(skip)]
    pub(super) recipient: RecipientHash,
    #[serde(skip)]
    pub(super) is_of_another: bool,
    pub(super) to: String,
    pub(super) decision_by: Option<Timestamp>,
    #[serde(flatten)]
    pub(super) task: MailedTask,
    pub(super) task_link: String,
    /// The same, with a proposed decision.
    pub(super) approve_link: Option<String>,
    pub(super) reject_link: Option<String>,
    pub(super) unsubscribe_link: Option<String>,
}

/// How often a call claims more: in place of mails that are not sent, or of creators with fewer mails than others.
const MAX_ROUNDS: usize = 64;
/// The part of a recipient's limit that one creator can use up.
const CREATORS_PER_RECIPIENT: u32 = 3;
/// How many mails of one kind about one task are sent in an hour, which is as many as there are reminders at most. Others
/// than its creator, for whom they count, may edit its approver or its due date, and each edit makes new ones.
const MAILS_OF_KIND: u32 = 5;
/// The part of what a creator may send that others can use up by such edits.
const EDITORS_PER_CREATOR: u32 = 3;

/// Claims mails that are due and for which a worker has room, in turn by the creators of their tasks, and deletes those that
/// must not be sent.
pub(super) async fn claim(
    database: &Database,
    mailing: &Mailing,
    turns: &Turns,
    keys: &MailKeys,
    room: Room,
) -> Result<DueMails<DueMail>, Error> {
    let (mailing, turns, keys) = (mailing.clone(), turns.clone(), keys.clone());
    let room = Room {
        limit: room.limit.min(MAX_CLAIMED),
        ..room
    };
    let claim = move |connection: &mut Connection| {
        let mut claimed = Claimed::default();
        for _ in 0..MAX_ROUNDS {
            let found = claimed.due.len();
            let round = |connection: &mut Connection| {
                let mut turn = turns.begin(connection, room.limit - found)?;
                turn.creators
                    .retain(|creator| Some(*creator) != room.except_creator);
                claim_in_turn(connection, &mailing, &keys, &turn, room, &mut claimed)
            };
            claimed.more = transaction(connection, round)?;
            // Mails that were found do not wait until many others are dropped.
            let is_fruitless = found > 0 && claimed.due.len() == found;
            if !claimed.more || claimed.due.len() >= room.limit || is_fruitless {
                break;
            }
        }
        Ok::<_, Error>(claimed)
    };
    let claimed = database.run(claim).await?;
    for (id, kind, reason) in claimed.dropped {
        let (kind, reason) = (kind.map_or("other", MailKind::name), reason.name());
        tracing::info!(mail.id = %id, kind, reason, "a mail about a task was dropped");
        metrics::counter!("task_mails_dropped_total", "kind" => kind, "reason" => reason)
            .increment(1);
    }
    let is_cancelled = |mail: &DueMail| mail.kind == MailKind::Cancelled;
    let (cancelled, mails) = claimed.due.into_iter().partition(is_cancelled);
    Ok(DueMails {
        mails,
        cancelled,
        // Without a row in all these rounds, another transaction holds those that are due.
        more: Some(claimed.more && claimed.rows > 0),
    })
}

#[derive(Default)]
struct Claimed {
    rows: usize,
    due: Vec<DueMail>,
    dropped: Vec<(MailId, Option<MailKind>, DropReason)>,
    more: bool,
}

impl Claimed {
    /// The number of mails of that one of these creators who has the most.
    fn most_of(&self, creators: &[UserId]) -> usize {
        let of = |creator: &UserId| {
            let own = self.due.iter().filter(|mail| mail.task.creator == *creator);
            own.count()
        };
        creators.iter().map(of).max().unwrap_or_default()
    }
}

/// Claims mails of the creators whose turn it is, the same number of each, as far as there is room. Returns whether more may
/// be due.
fn claim_in_turn(
    connection: &mut Connection,
    mailing: &Mailing,
    keys: &MailKeys,
    turn: &Turn,
    room: Room,
    claimed: &mut Claimed,
) -> Result<bool, Error> {
    let left = room.limit - claimed.due.len();
    let Some(each) = left.checked_div(turn.creators.len()) else {
        return Ok(turn.others);
    };
    let per_creator = room.per_creator.unwrap_or(usize::MAX);
    let each = each.min(per_creator.saturating_sub(claimed.most_of(&turn.creators)));
    let (mut due, mut dropped, mut delayed) = (Vec::new(), Vec::new(), Vec::new());
    let rows = store::claim(connection, &turn.creators, each, LEASE, MAX_DELAY)?;
    let number = rows.len();
    for row in rows {
        let (id, kind) = (row.id, MailKind::from_name(&row.kind));
        match judge(row, mailing, keys) {
            Ok(mail) => due.push(mail),
            Err(reason) => dropped.push((id, kind, reason)),
        }
    }
    let limited = count(connection, mailing, &due)?;
    for mail in due {
        if !limited.contains(&mail.id) {
            claimed.due.push(mail);
        } else if mail.kind == MailKind::Asked {
            // A request of which no one is told would wait for ever.
            delayed.push(mail.id);
        } else {
            dropped.push((mail.id, Some(mail.kind), DropReason::Limited));
        }
    }
    store::delay(connection, &delayed)?;
    let ids: Vec<_> = dropped.iter().map(|(id, ..)| *id).collect();
    store::delete(connection, &ids)?;
    claimed.dropped.extend(dropped);
    claimed.rows += number;
    // If all of them have fewer than their part, they have no more.
    Ok(turn.others || number >= each)
}

/// Whether a mail is to be sent, apart from limits.
fn judge(row: ClaimedMail, mailing: &Mailing, keys: &MailKeys) -> Result<DueMail, DropReason> {
    let kind = MailKind::from_name(&row.kind).ok_or(DropReason::Superseded)?;
    if !row.is_current || !fits(kind, row.task.status) {
        return Err(DropReason::Superseded);
    }
    // An earlier version changes due dates without these mails.
    if kind == MailKind::Due && !row.is_due {
        return Err(DropReason::Superseded);
    }
    if row.is_late || (kind == MailKind::Reminder && row.is_due) {
        return Err(DropReason::Late);
    }
    if row.is_opted_out && is_reminder(kind) {
        return Err(DropReason::OptedOut);
    }
    let secret = secret(&row, kind, keys).ok_or(DropReason::NoKey)?;
    Ok(due_mail(row, kind, &secret, mailing, keys))
}

fn due_mail(
    row: ClaimedMail,
    kind: MailKind,
    secret: &Secret,
    mailing: &Mailing,
    keys: &MailKeys,
) -> DueMail {
    let language = Language::from_name(&row.language).unwrap_or(Language::English);
    let recipient = row.recipient.as_slice().try_into().unwrap_or_default();
    let recipient = RecipientHash(recipient);
    let is_pending = row.task.status == TaskStatus::Pending;
    let url = &mailing.public_url;
    let link = |purpose| {
        let (task, version) = (row.task.task_id, row.content_version);
        let secret = secret.expose();
        format!("{url}/tasks?taskId={task}&version={version}&secret={secret}{purpose}")
    };
    let is_decided = kind == MailKind::Decided;
    let unsubscribe_link = || {
        let token = unsubscribe::token(keys.current(), recipient);
        format!("{url}/people-task/reminders/unsubscribe?token={token}")
    };
    DueMail {
        id: row.id,
        attempt: row.lease,
        kind,
        language: language.name(),
        recipient,
        is_of_another: row.is_of_another,
        to: row.address,
        decision_by: row.decision_by.map(Timestamp),
        task_link: link(if is_decided { "&role=requester" } else { "" }),
        approve_link: is_pending.then(|| link("&action=approve")),
        reject_link: is_pending.then(|| link("&action=reject")),
        unsubscribe_link: is_reminder(kind).then(unsubscribe_link),
        task: row.task,
    }
}

/// The recipient's secret, made with the key with which the stored hash was made.
fn secret(row: &ClaimedMail, kind: MailKind, keys: &MailKeys) -> Option<Secret> {
    let seed = Seed::from_slice(&row.seed)?;
    let part = match kind {
        MailKind::Decided => Part::Requester,
        MailKind::Asked | MailKind::Reminder | MailKind::Due | MailKind::Cancelled => {
            Part::Approver
        }
    };
    keys.all()
        .map(|key| seed.secret(key, row.task.task_id, part))
        .find(|secret| secret.fingerprint().matches(&row.secret))
}

/// Counts mails that are claimed for the first time, and returns those that exceed a limit. These count for no limit, so no
/// creator uses up what others may write to a person, and no one else what a creator may.
fn count(
    connection: &mut Connection,
    mailing: &Mailing,
    due: &[DueMail],
) -> Result<HashSet<MailId>, Error> {
    let first = due.iter().filter(|mail| mail.attempt == 1);
    let first: Vec<_> = first
        .map(|mail| (mail.id, counted(mail, mailing)))
        .collect();
    let all = first.iter().flat_map(|(_, counted)| counted);
    let all: Vec<_> = all.map(|counted| counted.hash).collect();
    if all.is_empty() {
        return Ok(HashSet::new());
    }
    // This also keeps others from counting until the end of the transaction.
    let earlier = store::count(connection, &all, 0)?;
    let mut counts: HashMap<_, _> = earlier.into_iter().collect();
    let (mut sent, mut limited) = (Vec::new(), HashSet::new());
    for (id, counted) in first {
        let number = |hash: [u8; 32]| counts.get(hash.as_slice()).copied().unwrap_or_default();
        let has_room = |counted: &Counted| {
            let is_first = counted.spares_first.is_some_and(|of| number(of) == 0);
            let limit = i64::from(counted.limit) * if is_first { 2 } else { 1 };
            number(counted.hash) < limit
        };
        if !counted.iter().all(has_room) {
            limited.insert(id);
            continue;
        }
        for Counted { hash, .. } in counted {
            *counts.entry(hash.to_vec()).or_default() += 1;
            sent.push(hash);
        }
    }
    store::count(connection, &sent, 1)?;
    Ok(limited)
}

/// What a mail counts for in an hour of the clock.
struct Counted {
    hash: [u8; 32],
    limit: u32,
    /// The limit is twice as high while this count is 0.
    spares_first: Option<[u8; 32]>,
}

fn counted(mail: &DueMail, mailing: &Mailing) -> Vec<Counted> {
    let hash = |parts: &[&[u8]]| Sha256::digest(parts.concat()).into();
    let (kind, task) = (mail.kind.name().as_bytes(), &mail.task);
    let of = |creator: UserId| -> [u8; 32] { hash(&[b"creator ", creator.as_bytes()]) };
    let recipient = mail.recipient.0;
    let shared = mailing.per_recipient.div_ceil(CREATORS_PER_RECIPIENT);
    let of_others = mailing.per_creator.div_ceil(EDITORS_PER_CREATOR);
    let of_others = if mail.is_of_another { of_others } else { 0 };
    let of_creator = hash(&[&recipient, &of(task.creator)]);
    let all = [
        (
            hash(&[b"edits of others ", task.account.as_bytes()]),
            of_others,
        ),
        // Without a limit for the creator there is none to use up.
        (
            hash(&[kind, task.task_id.as_bytes()]),
            MAILS_OF_KIND.min(mailing.per_creator),
        ),
        (of(task.account), mailing.per_creator),
        (of_creator, shared),
        (recipient, mailing.per_recipient),
    ];
    // 0 is none.
    let limits = all.into_iter().filter(|(_, limit)| *limit > 0);
    let counted = limits.map(|(hash, limit)| Counted {
        hash,
        limit,
        // Several creators together keep no other one from writing to a person.
        spares_first: (hash == recipient).then_some(of_creator),
    });
    counted.collect()
}

/// Records what became of a mail that was claimed: it is deleted, or becomes due again.
pub(super) async fn record(database: &Database, id: MailId, report: Report) -> Result<(), Error> {
    let pause = report.retry_after_ms.map(Duration::from_millis);
    let pause = pause.map(|pause| pause.min(MAX_DELAY));
    let attempt = i64::from(report.attempt);
    let record = move |connection: &mut Connection| match pause {
        Some(pause) => store::postpone(connection, id, attempt, pause, report.is_outage),
        None => store::delete(connection, &[id]),
    };
    database.run(record).await
}
