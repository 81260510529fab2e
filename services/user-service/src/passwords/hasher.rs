use std::panic::AssertUnwindSafe;
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use bcrypt::BcryptError;
use http_kit::Problem;
use tokio::sync::oneshot;

use super::password::{NewPassword, Password};

/// Hashes that wait for each thread before more are refused: a few seconds of work.
const WAITING_PER_THREAD: usize = 16;

/// bcrypt on threads of its own, as many as there are cores, with a short queue. A storm of sign-ins
/// neither starves other work nor makes a line that nobody waits for.
#[derive(Debug, Clone)]
pub(crate) struct Hasher {
    jobs: SyncSender<Job>,
    cost: u32,
    /// A hash of the current cost that no password has, so that an unknown user takes as long as a
    /// known one.
    decoy: Arc<str>,
}

type Job = Box<dyn FnOnce() + Send>;

/// Why a password was not hashed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum HashError {
    /// Enough hashes wait already.
    #[error("too many passwords wait to be hashed")]
    Busy,
    /// bcrypt refused, which a valid hash and cost rule out.
    #[error("bcrypt failed")]
    Failed(#[from] BcryptError),
    /// The thread is gone.
    #[error("a hashing thread ended")]
    Ended,
}

impl From<HashError> for Problem {
    fn from(error: HashError) -> Self {
        match error {
            HashError::Busy => Self::unavailable(
                "overloaded",
                "Too many passwords are being checked. Try again shortly.",
            ),
            HashError::Failed(_) | HashError::Ended => Self::internal(&error),
        }
    }
}

impl Hasher {
    /// Starts the threads; they end with the last clone.
    ///
    /// # Errors
    /// A cost that bcrypt refuses.
    pub(crate) fn start(cost: u32) -> Result<Self, HashError> {
        let threads = std::thread::available_parallelism().map_or(1, usize::from);
        Self::with_threads(cost, threads)
    }

    fn with_threads(cost: u32, threads: usize) -> Result<Self, HashError> {
        let unguessable = values::Secret::random();
        let decoy = bcrypt::non_truncating_hash(unguessable.expose(), cost)?.into();
        let (jobs, waiting) = sync_channel::<Job>(threads * WAITING_PER_THREAD);
        let waiting = Arc::new(Mutex::new(waiting));
        for _ in 0..threads {
            let waiting = Arc::clone(&waiting);
            std::thread::spawn(move || work(&waiting));
        }
        Ok(Self { jobs, cost, decoy })
    }

    /// Hashes a new password.
    ///
    /// # Errors
    /// [`HashError::Busy`] at once when the queue is full.
    pub(crate) async fn hash(&self, password: NewPassword) -> Result<String, HashError> {
        let cost = self.cost;
        // The type keeps to bcrypt's 72 bytes; `non_truncating_hash` refuses the 72nd.
        let hash = move || bcrypt::hash(password.expose(), cost);
        self.run(hash).await
    }

    /// Checks a password against a hash, or against nothing in the same time.
    ///
    /// # Errors
    /// [`HashError::Busy`] at once when the queue is full.
    pub(crate) async fn verify(
        &self,
        password: Password,
        hash: Option<String>,
    ) -> Result<bool, HashError> {
        let decoy = Arc::clone(&self.decoy);
        self.run(move || match (password.possible(), hash) {
            (Some(password), Some(hash)) => bcrypt::verify(password, &hash),
            _ => bcrypt::verify("", &decoy).map(|_| false),
        })
        .await
    }

    /// Whether a hash should be renewed because it has another cost.
    pub(crate) fn is_outdated(&self, hash: &str) -> bool {
        // `$2b$12$…`
        let cost = hash.split('$').nth(2).and_then(|cost| cost.parse().ok());
        cost != Some(self.cost)
    }

    async fn run<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> Result<T, BcryptError> + Send + 'static,
    ) -> Result<T, HashError> {
        let (answer, answered) = oneshot::channel();
        let span = tracing::Span::current();
        let started = Instant::now();
        let job: Job = Box::new(move || {
            // Whoever has gone away wants no hash.
            if !answer.is_closed() {
                let _ = answer.send(span.in_scope(work));
            }
        });
        self.jobs.try_send(job).map_err(|error| match error {
            TrySendError::Full(_) => {
                metrics::counter!("password_hashes_refused_total").increment(1);
                HashError::Busy
            }
            TrySendError::Disconnected(_) => HashError::Ended,
        })?;
        let result = answered.await.map_err(|_| HashError::Ended)?;
        metrics::histogram!("password_hash_seconds").record(started.elapsed().as_secs_f64());
        Ok(result?)
    }
}

fn work(waiting: &Mutex<Receiver<Job>>) {
    loop {
        let next = waiting
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .recv();
        match next {
            // A panic must not cost the thread; its caller gets `HashError::Ended`.
            Ok(job) => drop(std::panic::catch_unwind(AssertUnwindSafe(job))),
            Err(_) => return,
        }
    }
}

#[cfg(test)]
mod tests {
    use values::Secret;

    use super::{HashError, Hasher, WAITING_PER_THREAD};
    use crate::passwords::password::{NewPassword, Password, PasswordRules};

    fn new_password(text: &str) -> NewPassword {
        NewPassword::parse(Secret::new(text), PasswordRules { min_length: 5 }).unwrap()
    }

    #[tokio::test]
    async fn all_72_bytes_count() {
        let hasher = Hasher::with_threads(4, 1).unwrap();
        let (one, other) = ("a".repeat(72), format!("{}b", "a".repeat(71)));
        let hash = hasher.hash(new_password(&one)).await.unwrap();
        let check = async |text: &str| {
            let password = Password::from(Secret::new(text));
            hasher.verify(password, Some(hash.clone())).await.unwrap()
        };
        assert!(check(&one).await);
        assert!(!check(&other).await);
        assert!(!check(&format!("{one}a")).await);
    }

    #[tokio::test]
    async fn nobody_has_the_decoy() {
        let hasher = Hasher::with_threads(4, 1).unwrap();
        for text in ["", "password", &"a".repeat(100)] {
            let password = Password::from(Secret::new(text));
            assert!(!hasher.verify(password, None).await.unwrap());
        }
    }

    #[tokio::test]
    async fn another_cost_is_outdated() {
        let hasher = Hasher::with_threads(5, 1).unwrap();
        let hash = hasher.hash(new_password("12345")).await.unwrap();
        assert!(!hasher.is_outdated(&hash));
        assert!(hasher.is_outdated(&bcrypt::hash("12345", 4).unwrap()));
    }

    #[tokio::test]
    async fn beyond_the_queue_it_refuses_at_once() {
        let hasher = Hasher::with_threads(10, 1).unwrap();
        let wanted = (0..WAITING_PER_THREAD * 2).map(|_| hasher.hash(new_password("12345")));
        let results = futures_util::future::join_all(wanted).await;
        let busy = results.iter().filter(|r| matches!(r, Err(HashError::Busy)));
        let busy = busy.count();
        assert!((1..=WAITING_PER_THREAD).contains(&busy), "{busy}");
    }
}
