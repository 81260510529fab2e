//! Limits for which requests wait a limited time and in limited numbers.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use values::UserId;

/// How long a request waits for others.
const MAX_WAIT: Duration = Duration::from_secs(3);
/// How many requests wait for the same limit; more are refused at once.
const MAX_WAITING: usize = 64;
/// Users without a list in progress are forgotten when there are more users than this.
const REMEMBERED_CALLERS: usize = 1024;

/// A number of permits that requests share.
#[derive(Debug)]
pub(crate) struct Permits {
    free: Arc<Semaphore>,
    waiting: Semaphore,
}

impl Permits {
    pub(crate) fn new(permits: usize) -> Self {
        Self {
            free: Arc::new(Semaphore::new(permits)),
            waiting: Semaphore::new(MAX_WAITING),
        }
    }

    /// Takes permits that are free now.
    pub(crate) fn try_acquire(&self, permits: u32) -> Option<OwnedSemaphorePermit> {
        Arc::clone(&self.free).try_acquire_many_owned(permits).ok()
    }

    /// Waits for permits, after those who already wait; `None` if that takes too long.
    pub(crate) async fn acquire(&self, permits: u32) -> Option<OwnedSemaphorePermit> {
        if let Some(permit) = self.try_acquire(permits) {
            return Some(permit);
        }
        let _waiting = self.waiting.try_acquire().ok()?;
        let permit = Arc::clone(&self.free).acquire_many_owned(permits);
        tokio::time::timeout(MAX_WAIT, permit).await.ok()?.ok()
    }
}

/// A number of permits for each user. Callers without a token have no limit: a task's secret opens one task.
#[derive(Debug)]
pub(crate) struct CallerLimit {
    each: usize,
    callers: Mutex<HashMap<UserId, Arc<Permits>>>,
}

/// One of a user's permits.
#[derive(Debug)]
pub(crate) struct CallerPermit {
    /// Kept together with the map's entry.
    _permit: Option<(OwnedSemaphorePermit, Arc<Permits>)>,
}

impl CallerLimit {
    pub(crate) fn new(each: usize) -> Self {
        Self {
            each,
            callers: Mutex::default(),
        }
    }

    /// Takes a permit of the caller that is free now.
    pub(crate) fn try_acquire(&self, caller: Option<UserId>) -> Option<CallerPermit> {
        let permit = match caller.map(|caller| self.permits_of(caller)) {
            Some(permits) => Some((permits.try_acquire(1)?, permits)),
            None => None,
        };
        Some(CallerPermit { _permit: permit })
    }

    /// Waits for a permit of the caller; `None` if that takes too long.
    pub(crate) async fn acquire(&self, caller: Option<UserId>) -> Option<CallerPermit> {
        let permit = match caller.map(|caller| self.permits_of(caller)) {
            Some(permits) => Some((permits.acquire(1).await?, permits)),
            None => None,
        };
        Some(CallerPermit { _permit: permit })
    }

    fn permits_of(&self, caller: UserId) -> Arc<Permits> {
        let mut callers = self.callers.lock().unwrap_or_else(PoisonError::into_inner);
        if callers.len() >= REMEMBERED_CALLERS {
            callers.retain(|_, permits| Arc::strong_count(permits) > 1);
        }
        let permits = callers.entry(caller);
        Arc::clone(permits.or_insert_with(|| Arc::new(Permits::new(self.each))))
    }
}

#[cfg(test)]
mod tests {
    use values::UserId;

    use super::{CallerLimit, MAX_WAITING, Permits, REMEMBERED_CALLERS};

    #[tokio::test]
    async fn a_request_waits_until_enough_permits_are_free() {
        let permits = Permits::new(10);
        let first = permits.try_acquire(8).unwrap();
        assert!(permits.try_acquire(3).is_none());
        // join! polls the first future first, so it is already waiting when the permit is dropped.
        let (second, ()) = tokio::join!(permits.acquire(3), async { drop(first) });
        assert!(second.is_some());
    }

    #[tokio::test]
    async fn requests_beyond_those_that_may_wait_are_refused_at_once() {
        let permits = Permits::new(1);
        let taken = permits.try_acquire(1);
        let waiting = (0..MAX_WAITING).map(|_| async { permits.acquire(1).await.is_some() });
        let (waited, refused) = tokio::join!(futures_util::future::join_all(waiting), async {
            let refused = permits.acquire(1).await.is_none();
            drop(taken);
            refused
        });
        assert!(refused);
        assert!(waited.into_iter().all(|acquired| acquired));
    }

    #[tokio::test]
    async fn each_user_has_permits_and_idle_users_are_forgotten() {
        let limit = CallerLimit::new(1);
        let (ada, grace) = (Some(UserId::generate()), Some(UserId::generate()));
        let _held = limit.try_acquire(ada).unwrap();
        assert!(limit.try_acquire(ada).is_none());
        assert!(limit.try_acquire(grace).is_some());
        assert!(limit.try_acquire(None).is_some());
        for _ in 0..2 * REMEMBERED_CALLERS {
            assert!(limit.try_acquire(Some(UserId::generate())).is_some());
        }
        assert!(limit.callers.lock().unwrap().len() <= REMEMBERED_CALLERS);
        assert!(limit.try_acquire(ada).is_none());
    }
}
