use chrono::{DateTime, Utc};
use serde::{Deserialize, Deserializer};
use values::{FromText, Language, MailId, Names, Secret, TaskId};

values::names! {
    /// Why a mail is sent, with the name that the people-task service uses.
    pub(in crate::notifications::worker) enum MailKind {
        /// The approver is asked for a decision.
        Asked = "asked",
        /// The approver is reminded before the due date.
        Reminder = "reminder",
        /// The approver is reminded at the due date.
        Due = "due",
        /// The requester is told about the decision.
        Decided = "decided",
    }
}

/// A mail about a task, as the people-task service hands it over.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(in crate::notifications::worker) struct TaskMail {
    #[serde(deserialize_with = "text")]
    pub(in crate::notifications::worker) id: MailId,
    pub(in crate::notifications::worker) attempt: u32,
    #[serde(deserialize_with = "name")]
    pub(in crate::notifications::worker) kind: MailKind,
    #[serde(deserialize_with = "name")]
    pub(in crate::notifications::worker) language: Language,
    #[serde(deserialize_with = "text")]
    pub(in crate::notifications::worker) task_id: TaskId,
    pub(in crate::notifications::worker) to: String,
    pub(in crate::notifications::worker) requester: String,
    pub(in crate::notifications::worker) approver: String,
    pub(in crate::notifications::worker) title: String,
    pub(in crate::notifications::worker) description: String,
    pub(in crate::notifications::worker) decision_by: Option<DateTime<Utc>>,
    #[serde(rename = "status", deserialize_with = "is_approved")]
    pub(in crate::notifications::worker) is_approved: bool,
    pub(in crate::notifications::worker) decided_by: Option<String>,
    pub(in crate::notifications::worker) comment: Option<String>,
    #[serde(deserialize_with = "secret")]
    pub(in crate::notifications::worker) task_link: Secret,
    #[serde(deserialize_with = "optional_secret")]
    pub(in crate::notifications::worker) approve_link: Option<Secret>,
    #[serde(deserialize_with = "optional_secret")]
    pub(in crate::notifications::worker) reject_link: Option<Secret>,
    #[serde(deserialize_with = "optional_secret")]
    pub(in crate::notifications::worker) unsubscribe_link: Option<Secret>,
}

fn text<'de, T: FromText, D: Deserializer<'de>>(deserializer: D) -> Result<T, D::Error> {
    let text = String::deserialize(deserializer)?;
    T::from_text(&text).map_err(serde::de::Error::custom)
}

fn name<'de, T: Names, D: Deserializer<'de>>(deserializer: D) -> Result<T, D::Error> {
    let name = String::deserialize(deserializer)?;
    T::from_name(&name).ok_or_else(|| serde::de::Error::custom("an unknown name"))
}

fn is_approved<'de, D: Deserializer<'de>>(deserializer: D) -> Result<bool, D::Error> {
    Ok(String::deserialize(deserializer)? == "approved")
}

fn secret<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Secret, D::Error> {
    String::deserialize(deserializer).map(Secret::new)
}

fn optional_secret<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Secret>, D::Error> {
    Ok(Option::<String>::deserialize(deserializer)?.map(Secret::new))
}
