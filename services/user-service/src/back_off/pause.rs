use std::time::Duration;

/// The number of consecutive failures from one client network that starts the back-off.
const FAILURES_FROM_ONE_NETWORK: i32 = 5;
/// The number of consecutive failures from anywhere that starts the back-off.
const FAILURES_FROM_ANYWHERE: i32 = 50;
const FIRST_PAUSE: Duration = Duration::from_secs(1);
const MAX_PAUSE: Duration = Duration::from_secs(5 * 60);

/// Which failures are counted together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FailureScope {
    /// Failures of one name from one client network.
    OneNetwork,
    /// Failures of one name from anywhere.
    Anywhere,
}

impl FailureScope {
    /// How long the next attempt must wait after `failures` in a row: one second after the failure that
    /// reaches the threshold, doubling with each further one up to five minutes.
    pub(super) fn pause_after(self, failures: i32) -> Option<Duration> {
        let threshold = match self {
            Self::OneNetwork => FAILURES_FROM_ONE_NETWORK,
            Self::Anywhere => FAILURES_FROM_ANYWHERE,
        };
        let doublings = u32::try_from(failures.checked_sub(threshold)?).ok()?;
        let factor = 1_u32.checked_shl(doublings.min(30)).unwrap_or(u32::MAX);
        Some(FIRST_PAUSE.saturating_mul(factor).min(MAX_PAUSE))
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::FailureScope::{Anywhere, OneNetwork};

    #[test]
    fn the_pause_doubles_from_one_second_to_five_minutes() {
        let seconds = |failures| OneNetwork.pause_after(failures).map(|p| p.as_secs());
        assert_eq!(seconds(4), None);
        assert_eq!(
            [5, 6, 7, 12].map(seconds),
            [Some(1), Some(2), Some(4), Some(128)]
        );
        assert_eq!(
            [13, 14, 1000, i32::MAX].map(seconds),
            [Some(256), Some(300), Some(300), Some(300)]
        );
        assert_eq!(Anywhere.pause_after(49), None);
        assert_eq!(Anywhere.pause_after(50), Some(Duration::from_secs(1)));
    }
}
