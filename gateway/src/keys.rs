//! API keys: the gateway exchanges each for an access token at the user service, and services see only that:
//! [why](../../docs/decisions/api-keys.md).
//!
//! Keys are found by their hashes. At most [`MAX_KEYS`] are remembered; those that are used most stay. Texts that are no keys,
//! or not yet known as some, are apart, so that who sends many of them evicts no token.

use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use auth::ApiKey;
use http_kit::Problem;
use moka::sync::Cache;
use parking_lot::RwLock;
use tokio::sync::Mutex;
use values::{Fingerprint, Secret};

const MAX_KEYS: u64 = 10_000;
const MAX_OTHERS: u64 = 10_000;
/// A key that was not used for this long is forgotten.
const IDLE: Duration = Duration::from_secs(10 * 60);
/// How long it is remembered that a text is no key. Only a backup that is restored makes it one.
const REFUSED_FOR: Duration = Duration::from_secs(5 * 60);
/// The longest time after which the user service is asked again that said when.
const LONGEST_WAIT: Duration = Duration::from_secs(5);
/// How long it is remembered that the user service did not respond.
pub(crate) const UNAVAILABLE_FOR: Duration = Duration::from_secs(1);
const MAX_FAILING: u64 = 10_000;

pub(crate) struct KeyToken {
    text: Secret,
    exchanged: Instant,
    lifetime: Duration,
    /// The minute of its exchange, by the clock.
    minute: u64,
}

impl KeyToken {
    pub(crate) fn new(text: Secret, lifetime: Duration) -> Self {
        Self {
            text,
            exchanged: Instant::now(),
            lifetime,
            minute: current_minute(),
        }
    }

    pub(crate) fn expose(&self) -> &str {
        self.text.expose()
    }

    /// Whether it is time for the next one.
    pub(crate) fn is_stale(&self) -> bool {
        self.exchanged.elapsed() >= self.lifetime / 2 || self.minute != current_minute()
    }
}

fn current_minute() -> u64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    since.map_or(0, |since| since.as_secs() / 60)
}

/// Why there is no token for a key.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Refusal {
    /// It is no key.
    Invalid,
    /// It is off until an administrator confirms it, and is to be asked about again after this time.
    Off(Duration),
    /// Its network has tried too many texts that are no keys, and this may be another one.
    TooManyAttempts(Duration),
    /// The user service did not say.
    Unavailable,
}

impl Refusal {
    fn lasts(self) -> Duration {
        match self {
            Self::Invalid => REFUSED_FOR,
            Self::Off(wait) | Self::TooManyAttempts(wait) => wait.min(LONGEST_WAIT),
            Self::Unavailable => UNAVAILABLE_FOR,
        }
    }
}

impl From<Refusal> for Problem {
    fn from(refusal: Refusal) -> Self {
        match refusal {
            Refusal::Invalid | Refusal::Off(_) => auth::invalid_key(),
            Refusal::TooManyAttempts(wait) => Self::new(
                actix_web::http::StatusCode::TOO_MANY_REQUESTS,
                "too-many-attempts",
                "Too many failed attempts in a row. Wait as long as `Retry-After` says, then try again.",
            )
            .retry_after(wait),
            Refusal::Unavailable => Self::unavailable(
                "keys-unavailable",
                "This API key cannot be checked now. Try again soon.",
            ),
        }
    }
}

pub(crate) type Answer = Result<Arc<KeyToken>, Refusal>;

/// What is known of a text that came as a key.
#[derive(Default)]
pub(crate) struct Entry {
    /// The last answer of the user service, and until when it is used.
    known: RwLock<Option<(Answer, Instant)>>,
    /// It was a key once, or is counted as a guess, so that its next refusal is none.
    is_accounted_for: AtomicBool,
    /// Held by the request that asks the user service.
    pub(crate) asking: Arc<Mutex<()>>,
}

impl Entry {
    /// What is known now; `None` if the user service has to be asked.
    pub(crate) fn current(&self) -> Option<Answer> {
        let known = self.known.read();
        let (answer, until) = known.as_ref()?;
        (Instant::now() < *until).then(|| answer.clone())
    }

    /// Takes note of an answer, and returns the one that counts. A token that has not ended stays while the user service does
    /// not say anything else, and no key is still none when its network must wait: a client would repeat it after each `429`.
    fn note(&self, answer: Answer) -> Answer {
        let now = Instant::now();
        let mut known = self.known.write();
        let answer = match (answer, &*known) {
            (Err(Refusal::Unavailable), Some((Ok(token), until))) if now < *until => {
                return Ok(Arc::clone(token));
            }
            (Err(Refusal::TooManyAttempts(_)), Some((Err(Refusal::Invalid), _))) => {
                Err(Refusal::Invalid)
            }
            (answer, _) => answer,
        };
        let until = match &answer {
            Ok(token) => {
                self.is_accounted_for.store(true, Ordering::Relaxed);
                token.exchanged + token.lifetime
            }
            Err(refusal) => now + refusal.lasts(),
        };
        *known = Some((answer.clone(), until));
        answer
    }

    /// Whether a refusal is a guess that is to be counted. It is taken as counted from then on.
    pub(crate) fn is_new_guess(&self) -> bool {
        !self.is_accounted_for.swap(true, Ordering::Relaxed)
    }

    pub(crate) fn forget(&self, token: &Arc<KeyToken>) {
        let mut known = self.known.write();
        known.take_if(|(answer, _)| matches!(answer, Ok(held) if Arc::ptr_eq(held, token)));
    }
}

pub(crate) struct KeyTokens {
    /// Keys that have a token, or had the last time.
    keys: Cache<[u8; 32], Arc<Entry>>,
    others: Cache<[u8; 32], Arc<Entry>>,
    /// Networks whose failed tries are over their limit, and until when.
    pub(crate) failing: Cache<IpAddr, Instant>,
}

impl Default for KeyTokens {
    fn default() -> Self {
        let entries = |most| Cache::builder().max_capacity(most).time_to_idle(IDLE);
        Self {
            keys: entries(MAX_KEYS).build(),
            others: entries(MAX_OTHERS).build(),
            failing: Cache::builder()
                .max_capacity(MAX_FAILING)
                .time_to_live(IDLE)
                .build(),
        }
    }
}

impl KeyTokens {
    /// The token of a key that has one already.
    pub(crate) fn known(&self, key: &ApiKey) -> Option<Arc<KeyToken>> {
        let entry = self.keys.get(key.fingerprint().as_bytes())?;
        entry.current()?.ok()
    }

    /// What is known of a text, be it a key or not.
    pub(crate) fn entry(&self, text: Fingerprint) -> Arc<Entry> {
        let key = self.keys.get(text.as_bytes());
        key.unwrap_or_else(|| self.others.get_with(*text.as_bytes(), Arc::default))
    }

    pub(crate) fn note(&self, text: Fingerprint, entry: &Arc<Entry>, answer: Answer) -> Answer {
        let answer = entry.note(answer);
        let (to, from) = match &answer {
            Ok(_) => (&self.keys, &self.others),
            Err(Refusal::Invalid) => (&self.others, &self.keys),
            Err(_) => return answer,
        };
        to.insert(*text.as_bytes(), Arc::clone(entry));
        from.invalidate(text.as_bytes());
        answer
    }
}

pub(crate) fn record(outcome: &'static str) {
    metrics::counter!("gateway_key_exchanges_total", "outcome" => outcome).increment(1);
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::Duration;

    use auth::ApiKey;
    use values::{CredentialId, Secret};

    use super::{Entry, KeyToken, KeyTokens, MAX_OTHERS, Refusal};

    fn token(lifetime: Duration) -> Arc<KeyToken> {
        Arc::new(KeyToken::new(Secret::new("token"), lifetime))
    }

    #[test]
    fn a_token_outlasts_a_user_service_that_does_not_respond_but_not_its_own_end() {
        let entry = Entry::default();
        let _ = entry.note(Ok(token(Duration::from_secs(60))));
        let _ = entry.note(Err(Refusal::Unavailable));
        assert!(matches!(entry.current(), Some(Ok(_))));
        let _ = entry.note(Ok(token(Duration::ZERO)));
        assert!(entry.current().is_none());
        let _ = entry.note(Err(Refusal::Unavailable));
        assert!(matches!(entry.current(), Some(Err(Refusal::Unavailable))));
    }

    #[test]
    fn a_key_that_has_ended_takes_its_token_with_it() {
        let entry = Entry::default();
        let _ = entry.note(Ok(token(Duration::from_secs(60))));
        let _ = entry.note(Err(Refusal::Invalid));
        assert!(matches!(entry.current(), Some(Err(Refusal::Invalid))));
    }

    #[test]
    fn a_text_is_one_guess_and_a_key_that_has_ended_is_none() {
        let entry = Entry::default();
        let _ = entry.note(Err(Refusal::Invalid));
        assert!(entry.is_new_guess());
        assert!(!entry.is_new_guess());
        let ended = Entry::default();
        let _ = ended.note(Ok(token(Duration::from_secs(60))));
        let _ = ended.note(Err(Refusal::Invalid));
        assert!(!ended.is_new_guess());
    }

    #[test]
    fn no_key_is_still_none_while_its_network_must_wait() {
        let wait = Refusal::TooManyAttempts(Duration::from_secs(60));
        let entry = Entry::default();
        assert!(matches!(
            entry.note(Err(wait)),
            Err(Refusal::TooManyAttempts(_))
        ));
        let _ = entry.note(Err(Refusal::Invalid));
        assert!(matches!(entry.note(Err(wait)), Err(Refusal::Invalid)));
        assert!(matches!(entry.current(), Some(Err(Refusal::Invalid))));
    }

    #[test]
    fn no_key_is_remembered_for_minutes_and_one_that_is_off_for_seconds() {
        let hour = Duration::from_secs(3600);
        assert_eq!(Refusal::Invalid.lasts(), Duration::from_secs(300));
        for refusal in [Refusal::Off(hour), Refusal::TooManyAttempts(hour)] {
            assert_eq!(refusal.lasts(), Duration::from_secs(5));
        }
    }

    #[test]
    fn texts_that_are_no_keys_evict_no_token() {
        let keys = KeyTokens::default();
        let key = ApiKey::generate(CredentialId::generate());
        let entry = keys.entry(key.fingerprint());
        let _ = keys.note(
            key.fingerprint(),
            &entry,
            Ok(token(Duration::from_secs(60))),
        );
        for number in 0..2 * MAX_OTHERS {
            let text = Secret::new(number.to_string()).fingerprint();
            for _ in 0..3 {
                let entry = keys.entry(text);
                let _ = keys.note(text, &entry, Err(Refusal::Invalid));
            }
        }
        keys.keys.run_pending_tasks();
        assert!(keys.known(&key).is_some());
        keys.others.run_pending_tasks();
        assert!(keys.others.entry_count() <= MAX_OTHERS);
        // Once it has ended, it is one of those texts.
        let _ = keys.note(key.fingerprint(), &entry, Err(Refusal::Invalid));
        assert_eq!(keys.keys.iter().count(), 0);
    }

    #[test]
    fn only_the_token_that_was_refused_is_forgotten() {
        let entry = Entry::default();
        let (first, second) = (
            token(Duration::from_secs(60)),
            token(Duration::from_secs(60)),
        );
        let _ = entry.note(Ok(Arc::clone(&first)));
        let _ = entry.note(Ok(second));
        entry.forget(&first);
        assert!(matches!(entry.current(), Some(Ok(_))));
    }
}
