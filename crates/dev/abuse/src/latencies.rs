//! The durations and failures of the normal user's calls.

use std::collections::BTreeMap;
use std::time::Duration;

use rig::outln;

/// The call that is not one of "all others": hashing a password takes longer than they do.
pub(crate) const SIGN_IN: &str = "sign-in";
const PERCENTS: [(&str, usize); 4] = [("median", 50), ("p95", 95), ("p99", 99), ("max", 100)];

/// What the normal user saw in one phase.
#[derive(Debug, Default)]
pub(crate) struct Latencies {
    calls: BTreeMap<&'static str, Calls>,
    first_failure: Option<String>,
}

/// The calls of one kind. The durations are those of the successful ones: a failed call may be fast or end with a
/// timeout, and neither is a latency.
#[derive(Debug, Clone, Default)]
pub(crate) struct Calls {
    durations: Vec<Duration>,
    failed: usize,
}

impl Latencies {
    /// Records one call.
    pub(crate) fn record(
        &mut self,
        call: &'static str,
        took: Duration,
        result: anyhow::Result<()>,
    ) {
        let calls = self.calls.entry(call).or_default();
        match result {
            Ok(()) => calls.durations.push(took),
            Err(error) => {
                calls.failed += 1;
                let failure = || format!("{call}: {error:#}");
                self.first_failure.get_or_insert_with(failure);
            }
        }
    }

    /// Adds calls that were made at the same time.
    pub(crate) fn merge(&mut self, other: Self) {
        for (call, calls) in other.calls {
            self.calls.entry(call).or_default().add(&calls);
        }
        self.first_failure = self.first_failure.take().or(other.first_failure);
    }

    /// All calls except signing in.
    pub(crate) fn all_others(&self) -> Calls {
        let mut all = Calls::default();
        for (call, calls) in &self.calls {
            if *call != SIGN_IN {
                all.add(calls);
            }
        }
        all
    }

    /// Prints a line for each call and one for all but signing in, with its ratio to `baseline`.
    pub(crate) fn print(&self, phase: &str, baseline: Option<&Calls>) {
        for (call, calls) in &self.calls {
            outln!("  {phase}: {call:<12} {}", calls.describe(None));
        }
        outln!(
            "  {phase}: {:<12} {}",
            "all others",
            self.all_others().describe(baseline)
        );
    }

    /// A line for the failures, if there are any.
    pub(crate) fn failure(&self, phase: &str) -> Option<String> {
        let first = self.first_failure.as_ref()?;
        let failed: usize = self.calls.values().map(|calls| calls.failed).sum();
        Some(format!(
            "{phase}: {failed} calls of the normal user, the first with {first}"
        ))
    }
}

impl Calls {
    fn add(&mut self, other: &Self) {
        self.durations.extend(&other.durations);
        self.failed += other.failed;
    }

    fn describe(&self, baseline: Option<&Self>) -> String {
        let mut line = format!("{:>6} calls, {} failed", self.durations.len(), self.failed);
        for (name, percent) in PERCENTS {
            let duration = self.percentile(percent);
            let milliseconds = duration.as_secs_f64() * 1e3;
            line.push_str(&format!(", {name} {milliseconds:.1} ms"));
            if let Some(before) = baseline.map(|baseline| baseline.percentile(percent)) {
                let ratio = duration.as_secs_f64() / before.as_secs_f64();
                line.push_str(&format!(" ({ratio:.1}x)"));
            }
        }
        line
    }

    /// The shortest duration that at least `percent` of the calls did not exceed.
    fn percentile(&self, percent: usize) -> Duration {
        let mut durations = self.durations.clone();
        durations.sort_unstable();
        let rank = (durations.len() * percent).div_ceil(100);
        let duration = durations.get(rank.saturating_sub(1));
        duration.copied().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::{Calls, Latencies, SIGN_IN};

    const MS: Duration = Duration::from_millis(1);

    #[test]
    fn percentiles_are_not_rounded_down() {
        let of = |count: u32| Calls {
            durations: (1..=count).map(|n| n * MS).collect(),
            failed: 0,
        };
        assert_eq!(of(10).percentile(50), 5 * MS);
        assert_eq!(of(10).percentile(95), 10 * MS);
        assert_eq!(of(100).percentile(99), 99 * MS);
        assert_eq!(of(1).percentile(50), MS);
        assert_eq!(of(0).percentile(99), Duration::ZERO);
    }

    #[test]
    fn failed_calls_are_counted_and_not_measured() {
        let mut latencies = Latencies::default();
        latencies.record("read", MS, Ok(()));
        latencies.record("read", 60_000 * MS, Err(anyhow::anyhow!("no response")));
        latencies.record(SIGN_IN, 300 * MS, Ok(()));
        let all = latencies.all_others();
        assert_eq!(
            all.describe(Some(&all)),
            "     1 calls, 1 failed, median 1.0 ms (1.0x), p95 1.0 ms (1.0x), p99 1.0 ms (1.0x), max 1.0 ms (1.0x)"
        );
        assert_eq!(
            latencies.failure("after").as_deref(),
            Some("after: 1 calls of the normal user, the first with read: no response")
        );
    }
}
