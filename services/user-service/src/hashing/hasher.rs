use std::panic::AssertUnwindSafe;
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use bcrypt::BcryptError;
use tokio::sync::oneshot;

use super::error::HashError;
use super::password::{NewPassword, Password};

/// The length of the queue, for each thread: a few seconds of work.
const QUEUE_PER_THREAD: usize = 16;

/// Runs bcrypt on its own threads, one for each core, behind a short queue, so that a burst of sign-ins
/// neither starves other work nor builds an unbounded queue.
#[derive(Debug, Clone)]
pub(crate) struct Hasher {
    jobs: SyncSender<Job>,
    cost: u32,
    /// A hash of the current cost whose password is unknown. It is verified for unknown users, so that
    /// they take as long as known ones.
    decoy: Arc<str>,
}

type Job = Box<dyn FnOnce() + Send>;

impl Hasher {
    /// Starts the threads. They end when the last clone is dropped.
    ///
    /// # Errors
    /// bcrypt does not support the cost.
    pub(crate) fn start(cost: u32) -> Result<Self, HashError> {
        let threads = std::thread::available_parallelism().map_or(1, usize::from);
        Self::with_threads(cost, threads)
    }

    fn with_threads(cost: u32, threads: usize) -> Result<Self, HashError> {
        let random_password = values::Secret::random();
        let decoy = bcrypt::non_truncating_hash(random_password.expose(), cost)?.into();
        let (jobs, queue) = sync_channel::<Job>(threads * QUEUE_PER_THREAD);
        let queue = Arc::new(Mutex::new(queue));
        for _ in 0..threads {
            let queue = Arc::clone(&queue);
            std::thread::spawn(move || run_jobs(&queue));
        }
        Ok(Self { jobs, cost, decoy })
    }

    /// Hashes a new password.
    ///
    /// # Errors
    /// [`HashError::Busy`] at once when the queue is full.
    pub(crate) async fn hash(&self, password: NewPassword) -> Result<String, HashError> {
        let cost = self.cost;
        // `NewPassword` has at most 72 bytes; `non_truncating_hash` would refuse the 72nd.
        let hash = move || bcrypt::hash(password.expose(), cost);
        self.run(hash).await
    }

    /// Checks a password against a hash. Without one it takes the same time and returns `false`.
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

    /// Whether a hash has another cost than new ones, and should be replaced.
    pub(crate) fn is_outdated(&self, hash: &str) -> bool {
        // `$2b$12$…`
        let cost = hash.split('$').nth(2).and_then(|cost| cost.parse().ok());
        cost != Some(self.cost)
    }

    async fn run<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> Result<T, BcryptError> + Send + 'static,
    ) -> Result<T, HashError> {
        let (sender, receiver) = oneshot::channel();
        let span = tracing::Span::current();
        let started = Instant::now();
        let job: Job = Box::new(move || {
            // Skips the work if the caller has disconnected.
            if !sender.is_closed() {
                let _ = sender.send(span.in_scope(work));
            }
        });
        self.jobs.try_send(job).map_err(|error| match error {
            TrySendError::Full(_) => {
                metrics::counter!("password_hashes_refused_total").increment(1);
                HashError::Busy
            }
            TrySendError::Disconnected(_) => HashError::Ended,
        })?;
        let result = receiver.await.map_err(|_| HashError::Ended)?;
        metrics::histogram!("password_hash_seconds").record(started.elapsed().as_secs_f64());
        Ok(result?)
    }
}

fn run_jobs(queue: &Mutex<Receiver<Job>>) {
    loop {
        let next = queue.lock().unwrap_or_else(PoisonError::into_inner).recv();
        match next {
            // A panic does not end the thread; the caller gets `HashError::Ended`.
            Ok(job) => drop(std::panic::catch_unwind(AssertUnwindSafe(job))),
            Err(_) => return,
        }
    }
}

#[cfg(test)]
mod tests {
    use values::Secret;

    use super::{HashError, Hasher, QUEUE_PER_THREAD};
    use crate::hashing::password::{NewPassword, Password, PasswordRules};

    fn new_password(text: &str) -> NewPassword {
        NewPassword::parse(Secret::new(text), PasswordRules { min_length: 5 }).unwrap()
    }

    #[tokio::test]
    async fn all_72_bytes_are_compared() {
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
    async fn without_a_hash_no_password_is_right() {
        let hasher = Hasher::with_threads(4, 1).unwrap();
        for text in ["", "password", &"a".repeat(100)] {
            let password = Password::from(Secret::new(text));
            assert!(!hasher.verify(password, None).await.unwrap());
        }
    }

    #[tokio::test]
    async fn a_hash_of_another_cost_is_outdated() {
        let hasher = Hasher::with_threads(5, 1).unwrap();
        let hash = hasher.hash(new_password("12345")).await.unwrap();
        assert!(!hasher.is_outdated(&hash));
        assert!(hasher.is_outdated(&bcrypt::hash("12345", 4).unwrap()));
    }

    #[tokio::test]
    async fn a_full_queue_refuses_at_once() {
        let hasher = Hasher::with_threads(10, 1).unwrap();
        let wanted = (0..QUEUE_PER_THREAD * 2).map(|_| hasher.hash(new_password("12345")));
        let results = futures_util::future::join_all(wanted).await;
        let busy = results.iter().filter(|r| matches!(r, Err(HashError::Busy)));
        let busy = busy.count();
        assert!((1..=QUEUE_PER_THREAD).contains(&busy), "{busy}");
    }
}
