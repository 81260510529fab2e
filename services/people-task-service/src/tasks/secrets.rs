//! The secrets of tasks. A secret begins with its task's identifier, so that the task is found by its key. An index on
//! random values would write a page for each task.

use values::{Fingerprint, FromText as _, Secret, TaskId};
use zeroize::Zeroizing;

const ID_DIGITS: usize = 24;
/// The random bytes after the identifier: 160 bits.
const RANDOM_BYTES: usize = 20;

/// Generates a secret of a task: 64 hexadecimal digits, of which the last 40 are random.
pub(crate) fn generate(task: TaskId) -> Secret {
    let random = Zeroizing::new(hex::encode(rand::random::<[u8; RANDOM_BYTES]>()));
    Secret::new(format!("{task}{}", random.as_str()))
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
