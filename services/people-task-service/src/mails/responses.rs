use serde::Serialize;
use values::{MailId, Names as _, Secret, TaskId, Timestamp, UserId};

use crate::mails::MailKind;
use crate::mails::claim::{DueMail, DueMails};

/// Mails for the notification worker.
#[derive(Serialize)]
pub(super) struct ClaimResponse {
    mails: Vec<MailResponse>,
    /// Mails about tasks that were withdrawn. A worker of an earlier version, which does not know them, leaves them out;
    /// another one gets them when the claim has ended.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    cancelled: Vec<MailResponse>,
    /// Whether more may be due.
    more: bool,
}

/// A mail, with everything that it says. It contains secrets and personal data.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct MailResponse {
    id: MailId,
    attempt: i64,
    kind: &'static str,
    language: &'static str,
    task_id: TaskId,
    creator: UserId,
    to: String,
    requester: String,
    approver: String,
    title: String,
    description: String,
    decision_by: Option<Timestamp>,
    status: &'static str,
    decided_by: Option<String>,
    comment: Option<String>,
    task_link: String,
    approve_link: Option<String>,
    reject_link: Option<String>,
    unsubscribe_link: Option<String>,
}

impl From<DueMails> for ClaimResponse {
    fn from(due: DueMails) -> Self {
        let is_cancelled = |mail: &DueMail| mail.kind == MailKind::Cancelled;
        let (cancelled, mails): (Vec<_>, Vec<_>) = due.mails.into_iter().partition(is_cancelled);
        let responses = |mails: Vec<DueMail>| mails.into_iter().map(MailResponse::from).collect();
        Self {
            mails: responses(mails),
            cancelled: responses(cancelled),
            more: due.more,
        }
    }
}

impl From<DueMail> for MailResponse {
    fn from(mail: DueMail) -> Self {
        let DueMail {
            kind,
            language,
            links,
            row,
        } = mail;
        let text = |link: Secret| link.expose().to_owned();
        Self {
            id: row.id,
            attempt: row.lease,
            kind: kind.name(),
            language: language.name(),
            task_id: row.task_id,
            creator: row.creator,
            to: row.address,
            requester: row.requester,
            approver: row.approver,
            title: row.title,
            description: row.description,
            decision_by: row.decision_by.map(Timestamp),
            status: row.status.name(),
            decided_by: row.decided_by,
            comment: row.comment,
            task_link: text(links.task),
            approve_link: links.approve.map(text),
            reject_link: links.reject.map(text),
            unsubscribe_link: links.unsubscribe.map(text),
        }
    }
}
