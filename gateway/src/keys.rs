//! API keys: the gateway exchanges each for an access token at the user service, and services see only that.
//!
//! - A token is kept until its end, at most some minutes, so the keys that are in use go on while the user service is away.
//!   It is exchanged again behind a request once half of its time is over, and in each minute in which it is used, by which the
//!   user service knows when a key was used last.
//! - Requests that need the token of a key at the same time wait for one exchange.
//! - A token that was revoked is never used: it is verified for each request, as any token is. It is exchanged once more,
//!   because the user's password may be new while the key goes on.
//! - A text that is no key is remembered for some seconds, and counts towards the limit on passwords of its network: once,
//!   because its repetition guesses nothing. What was a key, and has ended, does not count.
//!
//! Keys are found by their hashes. At most [`MAX_KEYS`] are remembered; those that are used most stay.

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
/// A key that was not used for this long is forgotten.
const IDLE: Duration = Duration::from_secs(10 * 60);
/// How long it is remembered that a text is no key.
const REFUSED_FOR: Duration = Duration::from_secs(5);
/// How long it is remembered that the user service did not respond.
pub(crate) const UNAVAILABLE_FOR: Duration = Duration::from_secs(1);
/// Networks whose failed tries are over their limit.
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
    /// It is no key, and its network has tried too many of them.
    TooManyAttempts(Duration),
    /// The user service did not say.
    Unavailable,
}

impl Refusal {
    fn lasts(self) -> Duration {
        match self {
            Self::Invalid => REFUSED_FOR,
            Self::TooManyAttempts(wait) => wait.min(REFUSED_FOR),
            Self::Unavailable => UNAVAILABLE_FOR,
        }
    }
}

impl From<Refusal> for Problem {
    fn from(refusal: Refusal) -> Self {
        match refusal {
            Refusal::Invalid => auth::invalid_key(),
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

    /// Takes note of an answer. A token that has not ended stays while the user service does not say anything else.
    pub(crate) fn note(&self, answer: &Answer) {
        let now = Instant::now();
        let mut known = self.known.write();
        let until = match answer {
            Ok(token) => {
                self.is_accounted_for.store(true, Ordering::Relaxed);
                token.exchanged + token.lifetime
            }
            Err(Refusal::Unavailable) if matches!(&*known, Some((Ok(_), until)) if now < *until) => {
                return;
            }
            Err(refusal) => now + refusal.lasts(),
        };
        *known = Some((answer.clone(), until));
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
    entries: Cache<[u8; 32], Arc<Entry>>,
    /// Networks whose failed tries are over their limit, and until when.
    pub(crate) failing: Cache<IpAddr, Instant>,
}

impl Default for KeyTokens {
    fn default() -> Self {
        Self {
            entries: Cache::builder()
                .max_capacity(MAX_KEYS)
                .time_to_idle(IDLE)
                .build(),
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
        let entry = self.entries.get(key.fingerprint().as_bytes())?;
        entry.current()?.ok()
    }

    /// What is known of a text, be it a key or not.
    pub(crate) fn entry(&self, text: Fingerprint) -> Arc<Entry> {
        self.entries.get_with(*text.as_bytes(), Arc::default)
    }
}

pub(crate) fn record(outcome: &'static str) {
    metrics::counter!("gateway_key_exchanges_total", "outcome" => outcome).increment(1);
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::Duration;

    use values::Secret;

    use super::{Entry, KeyToken, Refusal};

    fn token(lifetime: Duration) -> Arc<KeyToken> {
        Arc::new(KeyToken::new(Secret::new("token"), lifetime))
    }

    #[test]
    fn a_token_outlasts_a_user_service_that_does_not_respond_but_not_its_own_end() {
        let entry = Entry::default();
        entry.note(&Ok(token(Duration::from_secs(60))));
        entry.note(&Err(Refusal::Unavailable));
        assert!(matches!(entry.current(), Some(Ok(_))));
        entry.note(&Ok(token(Duration::ZERO)));
        assert!(entry.current().is_none());
        entry.note(&Err(Refusal::Unavailable));
        assert!(matches!(entry.current(), Some(Err(Refusal::Unavailable))));
    }

    #[test]
    fn a_key_that_has_ended_takes_its_token_with_it() {
        let entry = Entry::default();
        entry.note(&Ok(token(Duration::from_secs(60))));
        entry.note(&Err(Refusal::Invalid));
        assert!(matches!(entry.current(), Some(Err(Refusal::Invalid))));
    }

    #[test]
    fn a_text_is_one_guess_and_a_key_that_has_ended_is_none() {
        let entry = Entry::default();
        entry.note(&Err(Refusal::Invalid));
        assert!(entry.is_new_guess());
        assert!(!entry.is_new_guess());
        let ended = Entry::default();
        ended.note(&Ok(token(Duration::from_secs(60))));
        ended.note(&Err(Refusal::Invalid));
        assert!(!ended.is_new_guess());
    }

    #[test]
    fn only_the_token_that_was_refused_is_forgotten() {
        let entry = Entry::default();
        let (first, second) = (
            token(Duration::from_secs(60)),
            token(Duration::from_secs(60)),
        );
        entry.note(&Ok(Arc::clone(&first)));
        entry.note(&Ok(second));
        entry.forget(&first);
        assert!(matches!(entry.current(), Some(Ok(_))));
    }
}
