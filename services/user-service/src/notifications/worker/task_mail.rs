use auth::mails::MailKind;
use chrono::{DateTime, Utc};
use serde::{Deserialize, Deserializer};
use values::{Language, MailId, Names as _, Secret, TaskId, UserId};

/// A mail about a task, as the people-task service hands it over.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct TaskMail {
    pub(super) id: MailId,
    pub(super) attempt: u32,
    pub(super) kind: MailKind,
    #[serde(deserialize_with = "language")]
    pub(super) language: Language,
    pub(super) task_id: TaskId,
    /// The creator of the task. The version before does not say it.
    pub(super) creator: Option<UserId>,
    pub(super) to: String,
    pub(super) requester: String,
    pub(super) approver: String,
    pub(super) title: String,
    pub(super) description: String,
    pub(super) decision_by: Option<DateTime<Utc>>,
    pub(super) status: String,
    pub(super) decided_by: Option<String>,
    pub(super) comment: Option<String>,
    pub(super) task_link: Secret,
    pub(super) approve_link: Option<Secret>,
    pub(super) reject_link: Option<Secret>,
    pub(super) unsubscribe_link: Option<Secret>,
}

fn language<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Language, D::Error> {
    let name = String::deserialize(deserializer)?;
    Language::from_name(&name).ok_or_else(|| serde::de::Error::custom("an unknown name"))
}
