use std::sync::{Mutex, MutexGuard, PoisonError};

/// Locks a mutex. Poison is ignored, because a panic cannot leave these values half-written.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
