//! How long a check takes: the time must not tell whether there is a hash, or which cost it has.

use bcrypt::BcryptResult;

/// The cost of a hash such as `$2b$12$…`.
pub(super) fn cost_of(hash: &str) -> Option<u32> {
    hash.split('$').nth(2)?.parse().ok()
}

/// Checks a password against a hash, with the work of one bcrypt run of cost `total` in any case, unless the
/// hash itself has a higher cost. `decoy` does a run of the given cost that has no result.
pub(super) fn check(
    password: Option<&str>,
    hash: Option<&str>,
    total: u32,
    mut decoy: impl FnMut(u32),
) -> BcryptResult<bool> {
    let first = hash.and_then(cost_of).unwrap_or(total);
    let is_right = match password.zip(hash) {
        Some((password, hash)) => bcrypt::verify(password, hash)?,
        None => {
            decoy(first);
            false
        }
    };
    // Each cost takes twice as long as the one before, so one run of each closes the gap exactly.
    (first..total).for_each(&mut decoy);
    Ok(is_right)
}

pub(super) fn decoy(cost: u32) {
    std::hint::black_box(bcrypt::bcrypt(cost, [0; 16], b"decoy"));
}

#[cfg(test)]
mod tests {
    use super::check;

    const TOTAL: u32 = 9;

    /// The result of a check, and its work: the number of rounds of all its bcrypt runs.
    fn result_and_rounds(password: Option<&str>, cost: Option<u32>) -> (bool, u64) {
        let hash = cost.map(|cost| bcrypt::hash("right", cost).unwrap());
        let mut decoys = Vec::new();
        let run = |cost| decoys.push(cost);
        let is_right = check(password, hash.as_deref(), TOTAL, run).unwrap();
        let real = password.and(cost);
        let rounds = real.iter().chain(&decoys).map(|cost| 1 << cost);
        (is_right, rounds.sum())
    }

    #[test]
    fn every_check_does_the_same_work() {
        let same = 1 << TOTAL;
        for cost in 4..=TOTAL {
            assert_eq!(result_and_rounds(Some("right"), Some(cost)), (true, same));
            assert_eq!(result_and_rounds(Some("wrong"), Some(cost)), (false, same));
            // A password that no user can have.
            assert_eq!(result_and_rounds(None, Some(cost)), (false, same));
        }
        assert_eq!(result_and_rounds(Some("right"), None), (false, same));
        assert_eq!(result_and_rounds(None, None), (false, same));
    }
}
