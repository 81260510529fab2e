//! Formats results.

use std::time::Duration;

/// Formats the median, 99th percentile and maximum in milliseconds.
pub(crate) fn spread(name: &str, mut times: Vec<Duration>) -> String {
    times.sort_unstable();
    let at = |share: f64| {
        let index = (times.len().saturating_sub(1)) as f64 * share;
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "an index between zero and the length"
        )]
        let time = times
            .get(index.round() as usize)
            .copied()
            .unwrap_or_default();
        time.as_secs_f64() * 1e3
    };
    format!(
        "{name}: median {:.1} ms, p99 {:.1} ms, max {:.1} ms",
        at(0.5),
        at(0.99),
        at(1.0)
    )
}

/// Formats a count and a rate per second.
pub(crate) fn rate(name: &str, count: usize, time: Duration) -> String {
    let seconds = time.as_secs_f64().max(f64::MIN_POSITIVE);
    format!(
        "{name}: {count} in {seconds:.2} s, {:.0}/s",
        count as f64 / seconds
    )
}
