use std::sync::Arc;
use std::time::Duration;

const DEFAULT_LAST_PAUSE: Duration = Duration::from_secs(600);

/// When a job that failed is tried again: one pause after each failure. After the last one the job is given up.
#[derive(Debug, Clone)]
pub struct RetryPolicy(pub Arc<[Duration]>);

impl RetryPolicy {
    /// Attempts before a job is given up.
    pub fn max_attempts(&self) -> u32 {
        u32::try_from(self.0.len() + 1).unwrap_or(u32::MAX)
    }

    /// The jittered pause after this number of failed attempts; `None` when the job is given up.
    pub fn pause_after(&self, failures: u32) -> Option<Duration> {
        let pause = self.0.get(failures.saturating_sub(1) as usize)?;
        Some(jitter(*pause))
    }

    /// The jittered pause of a job that is not given up after the last attempt: the last one, or ten minutes if there is none.
    pub fn last_pause(&self) -> Duration {
        jitter(self.0.last().copied().unwrap_or(DEFAULT_LAST_PAUSE))
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
    fn a_schedule_has_one_attempt_more_than_pauses() {
        let policy = RetryPolicy([1, 5].map(Duration::from_secs).into());
        assert_eq!(policy.max_attempts(), 3);
        for (failures, expected) in [(1, Some(1)), (2, Some(5)), (3, None), (9, None)] {
            check(&policy, failures, expected);
        }
    }
}
