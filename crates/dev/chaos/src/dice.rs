//! Random choices that a seed repeats.

use std::time::Duration;

/// SplitMix64: small, and good enough to choose among faults.
#[derive(Debug, Clone)]
pub(crate) struct Dice(u64);

impl Dice {
    /// The choices of one `subject` in the run of a `seed`, independent of those of other subjects.
    pub(crate) fn of(seed: u64, subject: &str) -> Self {
        let hash = subject.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
        });
        let mut dice = Self(seed ^ hash);
        dice.roll();
        dice
    }

    fn roll(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number below `bound`; 0 when there is none.
    pub(crate) fn below(&mut self, bound: usize) -> usize {
        let bound = u64::try_from(bound).unwrap_or(u64::MAX).max(1);
        usize::try_from(self.roll() % bound).unwrap_or_default()
    }

    /// Whether something happens that happens `percent` times of a hundred.
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

    fn rolls(seed: u64, subject: &str) -> Vec<usize> {
        let mut dice = Dice::of(seed, subject);
        (0..20).map(|_| dice.below(1000)).collect()
    }

    #[test]
    fn a_seed_repeats_itself_and_subjects_differ() {
        assert_eq!(rolls(7, "faults"), rolls(7, "faults"));
        assert_ne!(rolls(7, "faults"), rolls(8, "faults"));
        assert_ne!(rolls(7, "faults"), rolls(7, "task 1"));
    }

    #[test]
    fn durations_stay_within_their_bounds() {
        let mut dice = Dice::of(1, "");
        let (from, to) = (Duration::from_millis(300), Duration::from_millis(303));
        for _ in 0..100 {
            assert!((from..=to).contains(&dice.between(from, to)));
        }
        assert_eq!(dice.between(to, to), to);
    }

    #[test]
    fn shuffling_keeps_every_item() {
        let mut items: Vec<usize> = (0..50).collect();
        Dice::of(3, "").shuffle(&mut items);
        assert_ne!(items, (0..50).collect::<Vec<_>>());
        items.sort_unstable();
        assert_eq!(items, (0..50).collect::<Vec<_>>());
    }
}
