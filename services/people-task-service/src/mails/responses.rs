use serde::Serialize;
use values::{MailId, Timestamp};

use crate::mails::MailKind;
use crate::mails::claim_store::MailedTask;
use crate::mails::store::RecipientHash;

/// Mails that were claimed, for the notification worker.
#[derive(Serialize)]
pub(super) struct DueMails {
    pub(super) mails: Vec<DueMail>,
    /// Mails about tasks that were withdrawn. A worker of an earlier version, which does not know them, leaves them out;
    /// another one gets them when the claim has ended.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) cancelled: Vec<DueMail>,
    /// Whether more may be due.
    pub(super) more: bool,
}

/// A mail that is to be sent now, with everything that it says. It contains secrets and personal data.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct DueMail {
    pub(super) id: MailId,
    /// The number of the claim.
    pub(super) attempt: i64,
    pub(super) kind: MailKind,
    pub(super) language: &'static str,
    #[serde(skip)]
    pub(super) recipient: RecipientHash,
    pub(super) to: String,
    pub(super) decision_by: Option<Timestamp>,
    #[serde(flatten)]
    pub(super) task: MailedTask,
    pub(super) task_link: String,
    /// The same, with a proposed decision.
    pub(super) approve_link: Option<String>,
    pub(super) reject_link: Option<String>,
    /// Ends reminders.
    pub(super) unsubscribe_link: Option<String>,
}
