//! Percentiles and rates.

use std::time::{Duration, Instant};

use crate::http::load::Call;

/// The median and the 99th percentile, in milliseconds.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct Spread {
    pub(crate) p50: f64,
    pub(crate) p99: f64,
}

impl Spread {
    pub(crate) fn of(times: impl Iterator<Item = Duration>) -> Self {
        let mut times: Vec<Duration> = times.collect();
        times.sort_unstable();
        // The smallest value that is at least as large as the given share of all values.
        let at = |percent: usize| {
            let index = (times.len() * percent).div_ceil(100).saturating_sub(1);
            times.get(index).copied().unwrap_or_default().as_secs_f64() * 1e3
        };
        Self {
            p50: at(50),
            p99: at(99),
        }
    }
}

/// Calls per second, from the first one that was due to the last response.
pub(crate) fn rate(calls: &[Call]) -> f64 {
    let first = calls.iter().map(|call| call.due).min();
    let last = calls.iter().map(|call| call.end).max();
    per_second(calls.len(), first, last)
}

/// Events per second between two moments.
pub(crate) fn per_second(count: usize, first: Option<Instant>, last: Option<Instant>) -> f64 {
    let (Some(first), Some(last)) = (first, last) else {
        return 0.0;
    };
    let seconds = last.saturating_duration_since(first).as_secs_f64();
    count as f64 / seconds.max(f64::EPSILON)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::Spread;

    #[test]
    fn percentiles_are_values_that_were_measured() {
        let times = |count: u64| (1..=count).rev().map(Duration::from_millis);
        let spread = Spread::of(times(100));
        assert!((spread.p50 - 50.0).abs() < 1e-9, "{spread:?}");
        assert!((spread.p99 - 99.0).abs() < 1e-9, "{spread:?}");
        let spread = Spread::of(times(1));
        assert!((spread.p99 - 1.0).abs() < 1e-9, "{spread:?}");
        assert_eq!(Spread::of(times(0)), Spread::default());
    }
}
