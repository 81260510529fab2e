//! The bodies of the calls by which the notification worker claims mails about tasks and reports what became of each.

use serde::{Deserialize, Serialize};
use values::UserId;

values::names! {
    /// Why a mail is sent, with the name in the database, in metrics and in the calls. The requester is told about the
    /// decision; all others go to the approver.
    #[derive(Serialize, Deserialize)]
    #[serde(rename_all = "kebab-case")]
    pub enum MailKind {
        /// A task waits for the decision.
        Asked = "asked",
        /// A reminder before the due date.
        Reminder = "reminder",
        /// A reminder at the due date.
        Due = "due",
        /// The task was approved or rejected.
        Decided = "decided",
        /// The task was withdrawn.
        Cancelled = "cancelled",
    }
}

/// What a worker can send now.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Room {
    /// How many mails.
    pub limit: usize,
    /// How many mails of one creator. Workers of versions before 0.3.0 do not say.
    pub per_creator: Option<usize>,
    /// The creator of whose mails it is sending too many already.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub except_creator: Option<UserId>,
}

/// Mails that were claimed.
#[derive(Serialize, Deserialize)]
pub struct DueMails<Mail> {
    /// All but those that follow.
    pub mails: Vec<Mail>,
    /// Mails about tasks that were withdrawn. Versions before 0.3.0 have none. A worker of those leaves them out, and another
    /// one gets them when the claim has ended.
    #[serde(default = "Vec::new", skip_serializing_if = "Vec::is_empty")]
    pub cancelled: Vec<Mail>,
    /// Whether more may be due. Versions before 0.3.0 do not say.
    pub more: Option<bool>,
}

/// What became of a mail.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Report {
    /// The number of the attempt, which is that of the claim.
    pub attempt: u32,
    /// The pause before the next attempt. `None` if there is none: the mail was sent or is given up.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retry_after_ms: Option<u64>,
    /// Whether the attempt does not count, because the mail server failed. 0.3.0 takes no notice, and gives the mail up.
    #[serde(default, rename = "outage", skip_serializing_if = "std::ops::Not::not")]
    pub is_outage: bool,
}
