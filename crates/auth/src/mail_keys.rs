//! The key that the people-task service and the notification worker share for mails about tasks.

use actix_web::web::Data;
use app_config::{Error, Reader, SettingValue};
use ring::hmac;
use values::Secret;

use crate::Rejection;
use crate::extractors::{bearer_token, token_missing, unauthenticated};

/// The shortest key, in characters: 128 bits in hexadecimal digits.
const MIN_LENGTH: usize = 32;
/// What the token of the notification worker is derived from.
const WORKER: &[u8] = b"notification-worker";

/// A key from which tokens and the secrets of links are derived, so that none of them has to be stored.
#[derive(Clone, derive_more::Debug)]
#[debug("MailKey(…)")]
pub struct MailKey(hmac::Key);

impl MailKey {
    /// Derives 32 bytes for a purpose from some parts, each of which is told apart from the others.
    pub fn derive(&self, purpose: &str, parts: &[&[u8]]) -> [u8; 32] {
        let mut context = hmac::Context::with_key(&self.0);
        for part in std::iter::once(purpose.as_bytes()).chain(parts.iter().copied()) {
            let length = u64::try_from(part.len()).unwrap_or(u64::MAX);
            context.update(&length.to_be_bytes());
            context.update(part);
        }
        let mut derived = [0; 32];
        derived.copy_from_slice(context.sign().as_ref());
        derived
    }

    fn from_secret(secret: &Secret, purpose: &str) -> Self {
        let secret = Self(hmac::Key::new(
            hmac::HMAC_SHA256,
            secret.expose().trim().as_bytes(),
        ));
        let derived = secret.derive(purpose, &[]);
        Self(hmac::Key::new(hmac::HMAC_SHA256, &derived))
    }

    fn worker_token(&self) -> Secret {
        Secret::new(hex::encode(self.derive("token", &[WORKER])))
    }
}

impl SettingValue for MailKey {
    const ALLOWED: &'static str = "a random text of at least 32 characters";
    const EXAMPLE: &'static str = "0123456789abcdef0123456789abcdef";
    const SECRET: bool = true;

    fn parse(text: &str) -> Result<Self, String> {
        let text = text.trim();
        if text.len() < MIN_LENGTH {
            return Err("it is too short".to_owned());
        }
        Ok(Self(hmac::Key::new(hmac::HMAC_SHA256, text.as_bytes())))
    }
}

/// The current key, and the one before it while it is replaced.
#[derive(Debug, Clone)]
pub struct MailKeys {
    current: MailKey,
    previous: Option<MailKey>,
}

impl MailKeys {
    /// Reads the keys. Without a current key there is no mail about tasks.
    ///
    /// # Errors
    /// A key is too short.
    pub fn read(reader: &mut Reader) -> Result<Option<Self>, Error> {
        let current = reader.optional(
            "TASK_MAIL_KEY",
            "Turns on mail about tasks: the key that the people-task-service and the notification-worker share for it. Give both the same.",
        )?;
        let previous = reader.optional(
            "TASK_MAIL_PREVIOUS_KEY",
            "The previous TASK_MAIL_KEY, which is accepted until the links of mails that were made with it are no longer needed.",
        )?;
        Ok(current.map(|current| Self { current, previous }))
    }

    /// Keys for another purpose, from secrets that a process has anyway. Whitespace around a secret does not count. A previous
    /// secret that is the current one, as after half of a rotation, is no second key.
    pub fn from_secrets(current: &Secret, previous: Option<&Secret>, purpose: &str) -> Self {
        let is_other = |previous: &&Secret| previous.expose().trim() != current.expose().trim();
        let previous = previous.filter(is_other);
        Self {
            current: MailKey::from_secret(current, purpose),
            previous: previous.map(|previous| MailKey::from_secret(previous, purpose)),
        }
    }

    /// The key for what is made from now on.
    pub fn current(&self) -> &MailKey {
        &self.current
    }

    /// Both keys, for what was made before.
    pub fn all(&self) -> impl Iterator<Item = &MailKey> {
        std::iter::once(&self.current).chain(&self.previous)
    }

    /// The bearer token with which the notification worker authenticates.
    pub fn worker_token(&self) -> Secret {
        self.current.worker_token()
    }

    fn is_worker_token(&self, token: &str) -> bool {
        let given = Secret::new(token).fingerprint();
        let matches = |key: &MailKey| given.matches(key.worker_token().fingerprint().as_bytes());
        self.all().any(matches)
    }
}

/// The notification worker, authenticated by a token that is derived from the [`MailKeys`]; `401` otherwise.
///
/// The application data must hold a `Data<MailKeys>`; without one, every token is refused.
#[derive(Debug, Clone, Copy)]
pub struct NotificationWorkerCaller;

http_kit::extractors! {
    NotificationWorkerCaller = |request| {
        let token = bearer_token(&request)?.ok_or_else(token_missing)?;
        let keys = request.app_data::<Data<MailKeys>>();
        let is_worker = keys.is_some_and(|keys| keys.is_worker_token(token));
        let worker = is_worker.then_some(Self);
        worker.ok_or_else(|| unauthenticated(Rejection::Invalid))
    };
}

#[cfg(test)]
mod tests {
    use app_config::Reader;

    use super::MailKeys;

    fn keys(pairs: &[(&str, &str)]) -> MailKeys {
        let mut reader = Reader::from_pairs(pairs.iter().copied()).unwrap();
        MailKeys::read(&mut reader).unwrap().unwrap()
    }

    const OLD: &str = "old-old-old-old-old-old-old-old-";
    const NEW: &str = "new-new-new-new-new-new-new-new-";

    #[test]
    fn without_a_key_there_is_no_mail_and_a_short_one_is_refused() {
        let read = |pairs: &[(&str, &str)]| {
            MailKeys::read(&mut Reader::from_pairs(pairs.iter().copied()).unwrap())
        };
        assert!(read(&[]).unwrap().is_none());
        let error = read(&[("TASK_MAIL_KEY", "too-short-to-keep")]).unwrap_err();
        assert!(!error.to_string().contains("too-short-to-keep"), "{error}");
    }

    #[test]
    fn the_worker_is_accepted_with_either_key_while_they_are_replaced() {
        let old = keys(&[("TASK_MAIL_KEY", OLD)]);
        let both = keys(&[("TASK_MAIL_KEY", NEW), ("TASK_MAIL_PREVIOUS_KEY", OLD)]);
        assert!(both.is_worker_token(old.worker_token().expose()));
        assert!(both.is_worker_token(both.worker_token().expose()));
        assert!(!old.is_worker_token(both.worker_token().expose()));
        assert!(!old.is_worker_token(""));
    }

    #[test]
    fn what_is_derived_differs_by_purpose_and_by_every_part() {
        let keys = keys(&[("TASK_MAIL_KEY", OLD)]);
        let derive = |purpose, parts: &[&[u8]]| keys.current().derive(purpose, parts);
        let derived = derive("a", &[b"bc", b"d"]);
        assert_eq!(derived, derive("a", &[b"bc", b"d"]));
        for other in [
            derive("ab", &[b"c", b"d"]),
            derive("a", &[b"b", b"cd"]),
            derive("a", &[b"bcd"]),
        ] {
            assert_ne!(derived, other);
        }
    }
}
