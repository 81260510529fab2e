//! A seeded random number generator.

use std::time::Duration;

/// SplitMix64: small, and good enough to choose faults.
#[derive(Debug, Clone)]
pub(crate) struct Rng(u64);

impl Rng {
    /// A generator for one `subject` of a run, independent of those for other subjects.
    pub(crate) fn for_subject(seed: u64, subject: &str) -> Self {
        let hash = subject.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
        });
        let mut rng = Self(seed ^ hash);
        rng.next_u64();
        rng
    }

    fn next_u64(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number below `bound`, or 0 if `bound` is 0.
    pub(crate) fn below(&mut self, bound: usize) -> usize {
        let bound = u64::try_from(bound).unwrap_or(u64::MAX).max(1);
        usize::try_from(self.next_u64() % bound).unwrap_or_default()
    }

    /// Returns `true` with a probability of `percent`.
    pub(crate) fn chance(&mut self, percent: usize) -> bool {
        self.below(100) < percent
    }

    /// A whole number of milliseconds from `from` to `to`.
    pub(crate) fn between(&mut self, from: Duration, to: Duration) -> Duration {
        let span = to.saturating_sub(from).as_millis();
        let span = usize::try_from(span).unwrap_or_default();
        from + Duration::from_millis(u64::try_from(self.below(span + 1)).unwrap_or_default())
    }

    pub(crate) fn choose<'items, T>(&mut self, items: &'items [T]) -> Option<&'items T> {
        items.get(self.below(items.len()))
    }

    pub(crate) fn shuffle<T>(&mut self, items: &mut [T]) {
        for last in (1..items.len()).rev() {
            items.swap(last, self.below(last + 1));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numbers(seed: u64, subject: &str) -> Vec<usize> {
        let mut rng = Rng::for_subject(seed, subject);
        (0..20).map(|_| rng.below(1000)).collect()
    }

    #[test]
    fn the_same_seed_and_subject_yield_the_same_numbers() {
        assert_eq!(numbers(7, "faults"), numbers(7, "faults"));
        assert_ne!(numbers(7, "faults"), numbers(8, "faults"));
        assert_ne!(numbers(7, "faults"), numbers(7, "task 1"));
    }

    #[test]
    fn durations_are_between_the_bounds() {
        let mut rng = Rng::for_subject(1, "");
        let (from, to) = (Duration::from_millis(300), Duration::from_millis(303));
        for _ in 0..100 {
            assert!((from..=to).contains(&rng.between(from, to)));
        }
        assert_eq!(rng.between(to, to), to);
    }

    #[test]
    fn shuffling_keeps_every_item() {
        let mut items: Vec<usize> = (0..50).collect();
        Rng::for_subject(3, "").shuffle(&mut items);
        assert_ne!(items, (0..50).collect::<Vec<_>>());
        items.sort_unstable();
        assert_eq!(items, (0..50).collect::<Vec<_>>());
    }
}
