//! Settings of the processes that make a run shorter.

use rig::instance::{Variables, owned};
use std::time::Duration;

/// After the last fault, the remaining deliveries must arrive within this time plus one pause.
pub(crate) const RECOVERY_LIMIT: Duration = Duration::from_secs(90);
/// An upgrade test takes less time, also on a slow machine.
pub(crate) const LONGEST_UPGRADE: Duration = Duration::from_secs(20 * 60);
/// The pauses after the first attempts, in seconds. All later ones are `LAST_PAUSE`.
const FIRST_PAUSES: [u64; 6] = [1, 1, 2, 2, 3, 3];
const LAST_PAUSE: u64 = 5;
/// The longest pause, with 20 % of jitter.
pub(crate) const LONGEST_PAUSE: Duration = Duration::from_secs(LAST_PAUSE + LAST_PAUSE / 5);

/// Enough pauses that no delivery is given up during a run.
fn retry_schedule(duration: Duration) -> String {
    let seconds = (duration + RECOVERY_LIMIT).as_secs();
    // Jitter shortens a pause by at most 20 %.
    let further = usize::try_from(seconds * 5 / 4 / LAST_PAUSE + 1).unwrap_or(usize::MAX);
    let last = std::iter::repeat_n(LAST_PAUSE, further);
    let pauses = FIRST_PAUSES.into_iter().chain(last);
    let pauses: Vec<String> = pauses.map(|seconds| format!("{seconds}s")).collect();
    pauses.join(",")
}

/// The changed settings. All processes get them, and each reads those that it knows.
pub(crate) fn changed(duration: Duration) -> Variables {
    let schedule = retry_schedule(duration);
    owned(&[
        ("RATE_LIMIT", "off"),
        ("BCRYPT_COST", "4"),
        // Doubles with every attempt. Small, because a deletion fails after ten attempts.
        ("DELETE_RETRY_PAUSE", "250ms"),
        ("NOTIFICATION_RETRY_SCHEDULE", &schedule),
        ("WEBHOOK_RETRY_SCHEDULE", &schedule),
        // Also bounds the lease that a killed worker leaves behind.
        ("WEBHOOK_TIMEOUT", "5s"),
    ])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_retry_schedule_is_longer_than_the_run() {
        for seconds in [10, 60, 600] {
            let duration = Duration::from_secs(seconds);
            let schedule = retry_schedule(duration);
            let sum: u64 = schedule
                .split(',')
                .map(|pause| pause.trim_end_matches('s').parse::<u64>().unwrap())
                .sum();
            let shortest = Duration::from_secs(sum * 4 / 5);
            assert!(shortest >= duration + RECOVERY_LIMIT, "{schedule}");
        }
    }
}
