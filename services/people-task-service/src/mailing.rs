//! What the processes' settings say about mails, and the secrets of tasks with mail.

use std::time::Duration;

use app_config::Switch;
use auth::{MailKey, MailKeys};
use values::{Language, Names as _, Secret, TaskId};

/// What the service needs for mails about tasks. Without keys none are sent.
pub(crate) use crate::settings::MailSettings as Mailing;

/// The random bytes of a secret, as many as those of other tasks have.
const SECRET_BYTES: usize = 20;

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
        let is_wanted = notify.unwrap_or(self.by_default == Switch::On);
        self.keys.as_ref().filter(|_| is_wanted)
    }
}

values::names! {
    /// The person who has a secret of a task.
    pub(crate) enum Part {
        Approver = "approver",
        Requester = "requester",
        /// Who is told a secret that only opens the task, because it is restricted who decides.
        Reader = "reader",
    }
}

/// Random bytes from which a secret is derived, together with a key that is not in the database.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Seed([u8; 16]);

impl Seed {
    pub(crate) fn random() -> Self {
        Self(rand::random())
    }

    pub(crate) fn from_slice(bytes: &[u8]) -> Option<Self> {
        bytes.try_into().ok().map(Self)
    }

    pub(crate) fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// The secret, in the form of those that are random: the task's identifier and 40 hexadecimal digits.
    pub(crate) fn secret(&self, key: &MailKey, task: TaskId, part: Part) -> Secret {
        let parts: [&[u8]; 3] = [part.name().as_bytes(), task.as_bytes(), &self.0];
        let mut digits = hex::encode(key.derive("task secret", &parts));
        digits.truncate(2 * SECRET_BYTES);
        Secret::new(format!("{task}{digits}"))
    }
}

#[cfg(test)]
mod tests {
    use app_config::SettingValue as _;
    use auth::MailKey;
    use values::TaskId;

    use super::{Part, Seed};

    #[test]
    fn a_secret_can_be_derived_again_and_differs_by_key_task_part_and_seed() {
        let key = MailKey::parse(MailKey::EXAMPLE).unwrap();
        let (seed, task) = (Seed::random(), TaskId::generate());
        let secret = seed.secret(&key, task, Part::Approver);
        assert_eq!(secret.expose().len(), 64);
        assert!(secret.expose().starts_with(&task.to_string()));
        let again = Seed::from_slice(seed.as_bytes()).unwrap();
        assert_eq!(
            secret.expose(),
            again.secret(&key, task, Part::Approver).expose()
        );
        let other_key = MailKey::parse("another key of more than 32 characters").unwrap();
        for other in [
            seed.secret(&key, task, Part::Requester),
            seed.secret(&key, task, Part::Reader),
            seed.secret(&other_key, task, Part::Approver),
            Seed::random().secret(&key, task, Part::Approver),
        ] {
            assert_ne!(secret.expose(), other.expose());
        }
    }
}
