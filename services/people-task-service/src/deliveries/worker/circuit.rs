//! Whether a lane or an origin is worth more than one request at a time.

use std::time::{Duration, Instant};

/// After this many failed attempts in a row it is tried with one request at a time.
const FAILURES: u32 = 5;
/// The pause before the first of these requests, and the longest one.
const PAUSE: (Duration, Duration) = (Duration::from_millis(250), Duration::from_secs(5));

/// For how long after it could be tried an open circuit counts, if nothing waits for it.
const FORGOTTEN_AFTER: Duration = Duration::from_secs(60);

/// While a circuit is open, a single request is made after each pause, until one succeeds.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Circuit {
    /// Failed attempts in a row.
    failures: u32,
    open: Option<Open>,
}

#[derive(Debug, Clone, Copy)]
struct Open {
    pause: Duration,
    next_trial: Instant,
}

impl Circuit {
    /// Whether there is one request at a time.
    pub(super) fn is_open(&self) -> bool {
        self.open.is_some()
    }

    /// Whether the last request failed.
    pub(super) fn has_failed(&self) -> bool {
        self.failures > 0
    }

    /// Whether it is open, and may still be tried.
    pub(super) fn matters(&self, now: Instant) -> bool {
        self.open
            .is_some_and(|open| now < open.next_trial + FORGOTTEN_AFTER)
    }

    /// Whether a request may be made now, if there is no other.
    pub(super) fn permits(&self, now: Instant) -> bool {
        self.open.is_none_or(|open| open.next_trial <= now)
    }

    /// There was a response.
    pub(super) fn succeeded(&mut self) {
        *self = Self::default();
    }

    /// There was none, or it said that the receiver cannot work now. Returns whether this opened the circuit.
    pub(super) fn failed(&mut self, now: Instant) -> bool {
        self.failures = self.failures.saturating_add(1);
        let (first, longest) = PAUSE;
        match &mut self.open {
            // Requests that were made before it opened say nothing new.
            Some(open) if now < open.next_trial => false,
            Some(open) => {
                open.pause = (open.pause * 2).min(longest);
                open.next_trial = now + open.pause;
                false
            }
            None if self.failures >= FAILURES => {
                self.open = Some(Open {
                    pause: first,
                    next_trial: now + first,
                });
                true
            }
            None => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use super::Circuit;

    fn open_circuit(now: Instant) -> Circuit {
        let mut circuit = Circuit::default();
        let opened = (0..5).map(|_| circuit.failed(now));
        assert_eq!(
            opened.collect::<Vec<_>>(),
            [false, false, false, false, true]
        );
        circuit
    }

    #[test]
    fn it_opens_after_five_failures_in_a_row() {
        let now = Instant::now();
        let mut circuit = Circuit::default();
        for _ in 0..4 {
            circuit.failed(now);
        }
        circuit.succeeded();
        for _ in 0..4 {
            assert!(!circuit.failed(now));
        }
        assert!(!circuit.is_open());
        assert!(circuit.failed(now));
        assert!(circuit.is_open());
    }

    #[test]
    fn trials_become_rarer_down_to_one_in_five_seconds() {
        let mut now = Instant::now();
        let mut circuit = open_circuit(now);
        for milliseconds in [250, 500, 1_000, 2_000, 4_000, 5_000, 5_000] {
            let pause = Duration::from_millis(milliseconds);
            assert!(!circuit.permits(now + pause - Duration::from_millis(1)));
            now += pause;
            assert!(circuit.permits(now));
            assert!(!circuit.failed(now));
        }
    }

    #[test]
    fn late_failures_do_not_extend_a_pause_and_a_success_closes_it() {
        let now = Instant::now();
        let mut circuit = open_circuit(now);
        for _ in 0..10 {
            circuit.failed(now + Duration::from_millis(100));
        }
        assert!(circuit.permits(now + Duration::from_millis(250)));
        circuit.succeeded();
        assert!(circuit.permits(now));
        assert!(!circuit.is_open());
    }
}
