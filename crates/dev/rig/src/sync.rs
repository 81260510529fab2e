//! Threads, locks, and a value that threads wait for.

use std::{
    sync::{Condvar, Mutex, MutexGuard, PoisonError},
    thread,
};

/// A run has many threads, and each does little.
const STACK_SIZE: usize = 256 * 1024;

/// Starts a thread with a small stack. Returns `None` when the system cannot start one.
pub fn spawn(work: impl FnOnce() + Send + 'static) -> Option<thread::JoinHandle<()>> {
    thread::Builder::new()
        .stack_size(STACK_SIZE)
        .spawn(work)
        .ok()
}

/// Locks a mutex, and ignores that a thread panicked while it held it.
pub fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A value that threads can wait for.
#[derive(Debug, Default)]
pub struct Watch<T> {
    value: Mutex<T>,
    changed: Condvar,
}

impl<T: Copy> Watch<T> {
    /// Creates a value.
    pub fn new(value: T) -> Self {
        Self {
            value: Mutex::new(value),
            changed: Condvar::new(),
        }
    }

    /// The present value.
    pub fn get(&self) -> T {
        *lock(&self.value)
    }

    /// Changes the value, and wakes the threads that wait for it.
    pub fn set(&self, value: T) {
        *lock(&self.value) = value;
        self.changed.notify_all();
    }

    /// Blocks while `condition` holds. Returns the first value for which it does not.
    pub fn wait_while(&self, condition: impl Fn(&T) -> bool) -> T {
        let mut value = lock(&self.value);
        while condition(&value) {
            value = self
                .changed
                .wait(value)
                .unwrap_or_else(PoisonError::into_inner);
        }
        *value
    }
}
