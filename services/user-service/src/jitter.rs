//! Pauses between attempts.

use std::time::Duration;

/// A pause of `base`, twice that after the second failure, and so on, up to `longest`; within 20 %.
pub(crate) fn growing(base: Duration, failures: u32, longest: Duration) -> Duration {
    let doublings = failures.saturating_sub(1).min(20);
    let pause = base.saturating_mul(1 << doublings);
    jittered(pause.min(longest))
}

/// The pause, 20 % more or less, so that what failed together is not tried again together.
pub(crate) fn jittered(pause: Duration) -> Duration {
    pause.mul_f64(rand::random_range(0.8..=1.2))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_double_up_to_the_longest_within_a_fifth() {
        let longest = Duration::from_secs(300);
        for (failures, expected) in [(0, 1), (1, 1), (2, 2), (5, 16), (10, 300), (4_000, 300)] {
            let pause = growing(Duration::from_secs(1), failures, longest);
            let expected = Duration::from_secs(expected);
            assert!(pause >= expected.mul_f64(0.8) && pause <= expected.mul_f64(1.2));
        }
    }
}
