//! What the processes' settings say about mails, and the secrets of tasks with mail.

mod seeds;

use std::time::Duration;

use auth::MailKeys;
use values::Language;

/// What the service needs for mails about tasks. Without keys none are sent.
pub(crate) use crate::settings::MailSettings as Mailing;
pub(crate) use seeds::{Part, Seed};

/// How mails are sent about a task.
#[derive(Debug, Clone, Copy)]
pub(crate) struct MailPlan {
    pub(crate) language: Language,
    pub(crate) approver_seed: Seed,
    pub(crate) requester_seed: Seed,
}

impl Mailing {
    /// How many seconds before the due date reminders are sent.
    pub(crate) fn reminders(&self) -> Vec<f64> {
        self.reminders.iter().map(Duration::as_secs_f64).collect()
    }

    /// The keys for mails about a task whose creator asks for them, or does not say, if they are sent.
    pub(crate) fn keys_for(&self, notify: Option<bool>) -> Option<&MailKeys> {
        let is_wanted = notify.unwrap_or(self.by_default);
        self.keys.as_ref().filter(|_| is_wanted)
    }
}
