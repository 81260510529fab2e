use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::sync::mpsc::{Sender, channel};
use std::time::Instant;

use bcrypt::{BcryptError, BcryptResult};
use fairness::{FairQueue, Refused};
use parking_lot::Mutex;
use tokio::sync::oneshot;
use values::Secret;

use super::error::HashError;
use crate::client_network::ClientNetwork;
use crate::password_rules::{NewPassword, PasswordForm};

/// The length of the queue, for each thread: a few seconds of work.
const QUEUE_PER_THREAD: usize = 16;

/// Runs bcrypt on its own threads, one for each core, behind a short queue in which client networks take
/// turns. A burst of sign-ins neither starves other work nor other networks. When the queue is full, work is
/// [`HashError::Refused`].
#[derive(Clone)]
pub(crate) struct Hasher {
    queue: Arc<Mutex<FairQueue<ClientNetwork, Job>>>,
    /// Wakes a thread for each job in the queue.
    wake_ups: Sender<()>,
    cost: u32,
}

/// Does its work and sends the result, or sends the error instead.
type Job = Box<dyn FnOnce(Result<(), HashError>) + Send>;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verdict {
    Wrong,
    Right,
    /// The password is right, but the hash was made of another form than NFC and should be replaced.
    RightInOtherForm,
}

impl Hasher {
    /// Starts the threads. They end when the last clone is dropped.
    pub(crate) fn start(cost: u32) -> Self {
        let threads = std::thread::available_parallelism().map_or(1, usize::from);
        Self::with_threads(cost, threads)
    }

    fn with_threads(cost: u32, threads: usize) -> Self {
        let queue = FairQueue::<ClientNetwork, Job>::new(threads * QUEUE_PER_THREAD);
        let queue = Arc::new(Mutex::new(queue));
        let (wake_ups, sleep) = channel();
        let sleep = Arc::new(Mutex::new(sleep));
        for _ in 0..threads {
            let (queue, sleep) = (Arc::clone(&queue), Arc::clone(&sleep));
            std::thread::spawn(move || {
                while sleep.lock().recv().is_ok() {
                    let next = queue.lock().pop();
                    if let Some(job) = next {
                        // A panic does not end the thread; the caller gets `HashError::Ended`.
                        drop(std::panic::catch_unwind(AssertUnwindSafe(|| job(Ok(())))));
                    }
                }
            });
        }
        Self {
            queue,
            wake_ups,
            cost,
        }
    }

    pub(crate) async fn hash(
        &self,
        client: &ClientNetwork,
        password: NewPassword,
    ) -> Result<String, HashError> {
        let cost = self.cost;
        // `NewPassword` has at most 72 bytes; `non_truncating_hash` would refuse the 72nd.
        let hash = move || bcrypt::hash(password.expose(), cost);
        self.run(client, hash).await
    }

    /// Checks a password against a hash, in the time that a hash of the configured cost takes at least.
    pub(crate) async fn verify(
        &self,
        client: &ClientNetwork,
        password: Secret,
        hash: String,
    ) -> Result<bool, HashError> {
        let verdict = self.verify_in_equal_time(client, password, Some(hash), None);
        Ok(verdict.await? != Verdict::Wrong)
    }

    /// Checks a password against a hash, if there is one. It takes the same time without a hash and for hashes
    /// of every cost up to `highest_cost`, the highest one of all stored hashes.
    ///
    /// Each form of the password takes a turn of its own in the queue until one is right, so a password with three forms takes
    /// three turns of its network's share.
    pub(crate) async fn verify_in_equal_time(
        &self,
        client: &ClientNetwork,
        password: Secret,
        hash: Option<String>,
        highest_cost: Option<u32>,
    ) -> Result<Verdict, HashError> {
        let total = highest_cost.map_or(self.cost, |highest| highest.max(self.cost));
        let work = |text: Option<Secret>| {
            let hash = hash.clone();
            move || {
                let text = text.as_ref().map(Secret::expose);
                check(text, hash.as_deref(), total, decoy)
            }
        };
        let forms = PasswordForm::of(&password);
        if forms.is_empty() {
            self.run(client, work(None)).await?;
        }
        for form in forms {
            if self.run(client, work(Some(form.text))).await? {
                return Ok(if form.is_normal {
                    Verdict::Right
                } else {
                    Verdict::RightInOtherForm
                });
            }
        }
        Ok(Verdict::Wrong)
    }

    /// Whether a hash has another cost than new ones, and should be replaced.
    pub(crate) fn is_outdated(&self, hash: &str) -> bool {
        cost_of(hash) != Some(self.cost)
    }

    pub(crate) fn record_gauges(&self) {
        let waiting = u32::try_from(self.queue.lock().total()).unwrap_or(u32::MAX);
        metrics::gauge!("password_hash_queue").set(waiting);
    }

    async fn run<T: Send + 'static>(
        &self,
        client: &ClientNetwork,
        work: impl FnOnce() -> Result<T, BcryptError> + Send + 'static,
    ) -> Result<T, HashError> {
        let (sender, receiver) = oneshot::channel();
        let span = tracing::Span::current();
        let started = Instant::now();
        let job = move |turn: Result<(), HashError>| {
            // Skips the work if the caller has disconnected.
            if !sender.is_closed() {
                let done = turn.and_then(|()| Ok(span.in_scope(work)?));
                let _ = sender.send(done);
            }
        };
        let pushed = self.queue.lock().push(client, Box::new(job));
        let (_, displaced) = pushed.map_err(refused)?;
        match displaced {
            None => self.wake_ups.send(()).map_err(|_| HashError::Ended)?,
            // The thread that was woken for the displaced job finds the new one.
            Some(displaced) => displaced(Err(refused(Refused::ShareUsed))),
        }
        let result = receiver.await.map_err(|_| HashError::Ended)?;
        metrics::histogram!("password_hash_seconds").record(started.elapsed().as_secs_f64());
        result
    }
}

fn refused(reason: Refused) -> HashError {
    metrics::counter!("password_hashes_refused_total").increment(1);
    reason.into()
}

/// The cost of a hash such as `$2b$12$…`.
fn cost_of(hash: &str) -> Option<u32> {
    hash.split('$').nth(2)?.parse().ok()
}

/// Checks a password against a hash, with the work of one bcrypt run of cost `total` in any case, unless the
/// hash itself has a higher cost. `decoy` does a run of the given cost that has no result.
fn check(
    password: Option<&str>,
    hash: Option<&str>,
    total: u32,
    mut decoy: impl FnMut(u32),
) -> BcryptResult<bool> {
    let first = hash.and_then(cost_of).unwrap_or(total);
    let is_right = match password.zip(hash) {
        Some((password, hash)) => bcrypt::verify(password, hash)?,
        None => {
            decoy(first);
            false
        }
    };
    // Each cost takes twice as long as the one before, so one run of each closes the gap exactly.
    (first..total).for_each(&mut decoy);
    Ok(is_right)
}

fn decoy(cost: u32) {
    std::hint::black_box(bcrypt::bcrypt(cost, [0; 16], b"decoy"));
}

#[cfg(test)]
mod tests {
    use fairness::Refused;
    use values::Secret;

    use super::{HashError, Hasher, QUEUE_PER_THREAD, Verdict, check};
    use crate::client_network::ClientNetwork;
    use crate::password_rules::{NewPassword, PasswordRules};

    fn client() -> ClientNetwork {
        ClientNetwork::from("192.0.2.1")
    }

    fn new_password(text: &str) -> NewPassword {
        NewPassword::parse(&Secret::new(text), PasswordRules { min_length: 5 }).unwrap()
    }

    #[tokio::test]
    async fn all_72_bytes_are_compared() {
        let hasher = Hasher::with_threads(4, 1);
        let (one, other) = ("a".repeat(72), format!("{}b", "a".repeat(71)));
        let hash = hasher.hash(&client(), new_password(&one)).await.unwrap();
        let check = async |text: &str| {
            let password = Secret::new(text);
            hasher
                .verify(&client(), password, hash.clone())
                .await
                .unwrap()
        };
        assert!(check(&one).await);
        assert!(!check(&other).await);
        assert!(!check(&format!("{one}a")).await);
    }

    #[tokio::test]
    async fn a_check_in_equal_time_finds_the_right_password_and_no_other() {
        let hasher = Hasher::with_threads(5, 1);
        for (stored, highest) in [(4, None), (5, None), (6, Some(6)), (4, Some(6))] {
            let hash = bcrypt::hash("right", stored).unwrap();
            for (text, hash, expected) in [
                ("right", Some(hash.clone()), Verdict::Right),
                ("wrong", Some(hash.clone()), Verdict::Wrong),
                ("", Some(hash), Verdict::Wrong),
                ("right", None, Verdict::Wrong),
            ] {
                let password = Secret::new(text);
                let client = client();
                let verified = hasher.verify_in_equal_time(&client, password, hash, highest);
                assert_eq!(verified.await.unwrap(), expected, "{stored} {text}");
            }
        }
    }

    #[tokio::test]
    async fn a_hash_of_any_form_is_found_and_one_of_another_form_than_nfc_is_outdated() {
        let hasher = Hasher::with_threads(4, 1);
        let (composed, decomposed) = ("\u{e9}".repeat(2), "e\u{301}".repeat(2));
        let mixed = "\u{e9}e\u{301}".to_owned();
        for (stored, typed, expected) in [
            (&composed, &decomposed, Verdict::Right),
            (&composed, &mixed, Verdict::Right),
            (&decomposed, &composed, Verdict::RightInOtherForm),
            (&decomposed, &mixed, Verdict::RightInOtherForm),
            (&mixed, &mixed, Verdict::RightInOtherForm),
            (&mixed, &composed, Verdict::Wrong),
        ] {
            let hash = bcrypt::hash(stored, 4).unwrap();
            let password = Secret::new(typed);
            let (client, stored_hash) = (client(), Some(hash.clone()));
            let verified =
                hasher.verify_in_equal_time(&client, password.clone(), stored_hash, None);
            assert_eq!(verified.await.unwrap(), expected, "{stored} {typed}");
            let verified = hasher.verify(&client, password, hash).await.unwrap();
            assert_eq!(verified, expected != Verdict::Wrong);
        }
    }

    #[tokio::test]
    async fn a_hash_of_another_cost_is_outdated() {
        let hasher = Hasher::with_threads(5, 1);
        let hash = hasher.hash(&client(), new_password("12345")).await.unwrap();
        assert!(!hasher.is_outdated(&hash));
        assert!(hasher.is_outdated(&bcrypt::hash("12345", 4).unwrap()));
    }

    #[tokio::test]
    async fn a_flood_from_one_network_uses_up_only_its_own_share() {
        let hasher = Hasher::with_threads(8, 1);
        let other = ClientNetwork::from("192.0.2.2");
        let flood = (0..QUEUE_PER_THREAD * 3).map(|_| {
            let hasher = hasher.clone();
            tokio::spawn(async move { hasher.hash(&client(), new_password("12345")).await })
        });
        let flood: Vec<_> = flood.collect();
        tokio::task::yield_now().await;
        // As many as fit beside the flood.
        let others = (0..QUEUE_PER_THREAD / 2).map(|_| hasher.hash(&other, new_password("12345")));
        for result in futures_util::future::join_all(others).await {
            assert!(result.is_ok(), "{result:?}");
        }
        let flood = futures_util::future::join_all(flood).await;
        let refused = flood.iter().filter(|result| {
            let result = result.as_ref().unwrap();
            matches!(result, Err(HashError::Refused(Refused::ShareUsed)))
        });
        assert!(refused.count() >= QUEUE_PER_THREAD);
    }

    const TOTAL: u32 = 9;

    /// The result of a check, and its work: the number of rounds of all its bcrypt runs.
    fn result_and_rounds(password: Option<&str>, cost: Option<u32>) -> (bool, u64) {
        let hash = cost.map(|cost| bcrypt::hash("right", cost).unwrap());
        let mut decoys = Vec::new();
        let run = |cost| decoys.push(cost);
        let is_right = check(password, hash.as_deref(), TOTAL, run).unwrap();
        let real = password.and(cost);
        let rounds = real.iter().chain(&decoys).map(|cost| 1 << cost);
        (is_right, rounds.sum())
    }

    #[test]
    fn every_check_does_the_same_work() {
        let same = 1 << TOTAL;
        for cost in 4..=TOTAL {
            assert_eq!(result_and_rounds(Some("right"), Some(cost)), (true, same));
            assert_eq!(result_and_rounds(Some("wrong"), Some(cost)), (false, same));
            // A password that no user can have.
            assert_eq!(result_and_rounds(None, Some(cost)), (false, same));
        }
        assert_eq!(result_and_rounds(Some("right"), None), (false, same));
        assert_eq!(result_and_rounds(None, None), (false, same));
    }
}
