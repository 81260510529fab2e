//! The secrets of tasks. A secret begins with its task's identifier, so that the task is found by its key. An index on
//! random values would write a page for each task.

use auth::MailKeys;
use values::{Fingerprint, FromText as _, Secret, TaskId};
use zeroize::Zeroizing;

use crate::mailing::{MailPlan, Mailing, Part, Seed};
use crate::status::is_restricted;
use crate::tasks::requests::{MailLanguage, NewTaskFields};

const ID_DIGITS: usize = 24;
/// The random bytes after the identifier: 160 bits.
const RANDOM_BYTES: usize = 20;

/// Generates a secret of a task: 64 hexadecimal digits, of which the last 40 are random.
pub(crate) fn generate(task: TaskId) -> Secret {
    let random = Zeroizing::new(hex::encode(rand::random::<[u8; RANDOM_BYTES]>()));
    Secret::new(format!("{task}{}", random.as_str()))
}

/// The secrets of a new task, as they are stored.
pub(crate) struct NewSecrets {
    /// The approver's and the requester's.
    pub(crate) hashes: [Fingerprint; 2],
    /// That of the secret that only opens the task, if it is restricted who decides.
    pub(crate) reading_hash: Option<Fingerprint>,
    pub(crate) mail: Option<MailPlan>,
    /// The seeds from which the secrets that are told are derived, and their hashes, if the request may be repeated.
    pub(crate) told: Option<(Vec<u8>, Vec<u8>)>,
}

impl NewSecrets {
    /// Generates secrets. Returns with them those that the response tells: the approver's, or one that only opens the task,
    /// and the requester's. They are random, unless they must be made again: for mails, or for repeats of the request, which
    /// has `repeat_keys` then.
    pub(crate) fn generate(
        id: TaskId,
        fields: &NewTaskFields,
        mailing: &Mailing,
        repeat_keys: Option<&MailKeys>,
    ) -> (Self, [Secret; 2]) {
        let mail_keys = mailing.keys_for(fields.notify);
        let key = mail_keys.or(repeat_keys).map(MailKeys::current);
        let (approver_seed, requester_seed) = (Seed::random(), Seed::random());
        let secret = |seed: Seed, part| match key {
            Some(key) => seed.secret(key, id, part),
            None => generate(id),
        };
        let approver = secret(approver_seed, Part::Approver);
        let requester = secret(requester_seed, Part::Requester);
        let is_restricted = is_restricted(fields.deciders, fields.self_approval);
        let reader = is_restricted.then(|| secret(approver_seed, Part::Reader));
        let hashes = [&approver, &requester].map(Secret::fingerprint);
        let reading_hash = reader.as_ref().map(Secret::fingerprint);
        let told = [reader.unwrap_or(approver), requester];
        let language = fields.language.map(|MailLanguage(language)| language);
        let stored = Self {
            hashes,
            reading_hash,
            mail: mail_keys.map(|_| MailPlan {
                language: language.unwrap_or(mailing.language),
                approver_seed,
                requester_seed,
            }),
            told: repeat_keys.map(|_| {
                let seeds = [approver_seed.as_bytes(), requester_seed.as_bytes()];
                let hashes = told.each_ref().map(|told| *told.fingerprint().as_bytes());
                (seeds.concat(), hashes.concat())
            }),
        };
        (stored, told)
    }
}

/// A secret that a request carries.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PresentedSecret {
    pub(crate) fingerprint: Fingerprint,
    /// The task that it would belong to; `None` if it cannot be a secret.
    pub(crate) task: Option<TaskId>,
}

impl From<&Secret> for PresentedSecret {
    fn from(secret: &Secret) -> Self {
        let id = secret.expose().get(..ID_DIGITS);
        Self {
            fingerprint: secret.fingerprint(),
            task: id.and_then(|id| TaskId::from_text(id).ok()),
        }
    }
}

#[cfg(test)]
mod tests {
    use values::{Secret, TaskId};

    use super::{PresentedSecret, generate};

    fn task_of(secret: &Secret) -> Option<TaskId> {
        PresentedSecret::from(secret).task
    }

    #[test]
    fn a_secret_has_64_digits_and_tells_its_task() {
        let task = TaskId::generate();
        let (one, other) = (generate(task), generate(task));
        assert_eq!(one.expose().len(), 64);
        assert!(one.expose().bytes().all(|b| b.is_ascii_hexdigit()));
        assert_ne!(one.expose(), other.expose());
        assert_eq!(task_of(&one), Some(task));
    }

    #[test]
    fn a_text_without_an_identifier_tells_no_task() {
        for text in ["", "abc", "…secret", "x123456789abcdef01234567"] {
            assert_eq!(task_of(&Secret::new(text)), None);
        }
    }
}
