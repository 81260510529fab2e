use std::sync::Arc;
use std::time::Duration;

/// When a job that failed is tried again, and when it is given up.
#[derive(Debug, Clone)]
pub enum RetryPolicy {
    /// The pause doubles with every failure.
    Exponential {
        /// The pause after the first failure.
        first: Duration,
        /// The longest pause.
        max: Duration,
        /// Attempts before the job is given up.
        max_attempts: u32,
    },
    /// One pause after each failure; after the last one the job is given up.
    Schedule(Arc<[Duration]>),
}

impl RetryPolicy {
    /// Attempts before a job is given up.
    pub fn max_attempts(&self) -> u32 {
        match self {
            Self::Exponential { max_attempts, .. } => *max_attempts,
            Self::Schedule(pauses) => u32::try_from(pauses.len() + 1).unwrap_or(u32::MAX),
        }
    }

    /// The jittered pause after this number of failed attempts; `None` when the job is given up.
    pub fn pause_after(&self, failures: u32) -> Option<Duration> {
        if failures >= self.max_attempts() {
            return None;
        }
        let pause = match self {
            Self::Exponential { first, max, .. } => growing_pause(*first, *max, failures.into()),
            Self::Schedule(pauses) => *pauses.get(failures.saturating_sub(1) as usize)?,
        };
        Some(jitter(pause))
    }
}

/// The pause after this number of failures in a row: it doubles with each after the first one.
pub fn growing_pause(first: Duration, max: Duration, failures: u64) -> Duration {
    let doublings = failures.saturating_sub(1).min(20);
    first.saturating_mul(1 << doublings).min(max)
}

/// The pause, 20 % more or less, so that what failed together is not retried together.
pub fn jitter(pause: Duration) -> Duration {
    pause.mul_f64(rand::random_range(0.8..=1.2))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(policy: &RetryPolicy, failures: u32, expected: Option<u64>) {
        let (pause, expected) = (
            policy.pause_after(failures),
            expected.map(Duration::from_secs),
        );
        let within_a_fifth = match (pause, expected) {
            (Some(pause), Some(expected)) => {
                pause >= expected.mul_f64(0.8) && pause <= expected.mul_f64(1.2)
            }
            (pause, expected) => pause == expected,
        };
        assert!(within_a_fifth, "{failures}: {pause:?}");
    }

    #[test]
    fn exponential_pauses_double_up_to_the_longest() {
        let policy = RetryPolicy::Exponential {
            first: Duration::from_secs(1),
            max: Duration::from_secs(300),
            max_attempts: 5_000,
        };
        for (failures, expected) in [(0, 1), (1, 1), (2, 2), (5, 16), (10, 300), (4_000, 300)] {
            check(&policy, failures, Some(expected));
        }
        check(&policy, 5_000, None);
    }

    #[test]
    fn a_schedule_has_one_attempt_more_than_pauses() {
        let policy = RetryPolicy::Schedule([1, 5].map(Duration::from_secs).into());
        assert_eq!(policy.max_attempts(), 3);
        for (failures, expected) in [(1, Some(1)), (2, Some(5)), (3, None), (9, None)] {
            check(&policy, failures, expected);
        }
    }
}
