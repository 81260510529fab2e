//! Random choices that a seed repeats.

use rand::{SeedableRng as _, rngs::StdRng};
use ring::digest::{SHA256, digest};

/// A generator for one `subject` of a run, independent of those for other subjects.
pub(crate) fn for_subject(seed: u64, subject: &str) -> StdRng {
    let hash = digest(&SHA256, format!("{seed} {subject}").as_bytes());
    let mut key = <StdRng as rand::SeedableRng>::Seed::default();
    key.copy_from_slice(hash.as_ref());
    StdRng::from_seed(key)
}

#[cfg(test)]
mod tests {
    use rand::RngExt as _;

    use super::*;

    fn numbers(seed: u64, subject: &str) -> Vec<usize> {
        let mut rng = for_subject(seed, subject);
        (0..20).map(|_| rng.random_range(0..1000)).collect()
    }

    #[test]
    fn the_same_seed_and_subject_yield_the_same_numbers() {
        assert_eq!(numbers(7, "faults"), numbers(7, "faults"));
        assert_ne!(numbers(7, "faults"), numbers(8, "faults"));
        assert_ne!(numbers(7, "faults"), numbers(7, "task 1"));
    }
}
