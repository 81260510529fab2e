//! How long an account waits after failed sign-ins.

use std::time::Duration;

/// The failure in a row from one client address that begins the waiting.
const FAILURES_FROM_ONE_ADDRESS: i32 = 5;
/// The failure in a row from anywhere that begins the waiting.
const FAILURES_FROM_ANYWHERE: i32 = 50;
const FIRST_PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_secs(5 * 60);

/// Whose failures are counted together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Counted {
    /// Failures for one account from one client address.
    FromOneAddress,
    /// Failures for one account from anywhere.
    FromAnywhere,
}

impl Counted {
    /// How long the next attempt waits after so many failures in a row: one second after the failure
    /// that reaches the threshold, then twice as long each time, to five minutes.
    pub(super) fn pause_after(self, failures: i32) -> Option<Duration> {
        let threshold = match self {
            Self::FromOneAddress => FAILURES_FROM_ONE_ADDRESS,
            Self::FromAnywhere => FAILURES_FROM_ANYWHERE,
        };
        let doublings = u32::try_from(failures.checked_sub(threshold)?).ok()?;
        let factor = 1_u32.checked_shl(doublings.min(30)).unwrap_or(u32::MAX);
        Some(FIRST_PAUSE.saturating_mul(factor).min(LONGEST_PAUSE))
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::Counted::{FromAnywhere, FromOneAddress};

    #[test]
    fn the_pause_doubles_from_a_second_to_five_minutes() {
        let seconds = |failures| FromOneAddress.pause_after(failures).map(|p| p.as_secs());
        assert_eq!(seconds(4), None);
        assert_eq!(
            [5, 6, 7, 12].map(seconds),
            [Some(1), Some(2), Some(4), Some(128)]
        );
        assert_eq!(
            [13, 14, 1000, i32::MAX].map(seconds),
            [Some(256), Some(300), Some(300), Some(300)]
        );
        assert_eq!(FromAnywhere.pause_after(49), None);
        assert_eq!(FromAnywhere.pause_after(50), Some(Duration::from_secs(1)));
    }
}
