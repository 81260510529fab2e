//! The durations and failures of the normal user's calls.

use std::collections::BTreeMap;
use std::time::Duration;

use xtask::outln;

/// What the normal user saw in one phase.
#[derive(Debug, Default)]
pub(crate) struct Latencies {
    calls: BTreeMap<&'static str, Vec<Duration>>,
    failures: Vec<String>,
}

impl Latencies {
    /// Records one call.
    pub(crate) fn record(
        &mut self,
        call: &'static str,
        took: Duration,
        result: anyhow::Result<()>,
    ) {
        self.calls.entry(call).or_default().push(took);
        if let Err(error) = result {
            self.failures.push(format!("{call}: {error:#}"));
        }
    }

    /// Prints a line for each call and one for all. Returns a line for the failures, if there are any.
    pub(crate) fn print(self, phase: &str) -> Option<String> {
        for (call, durations) in self.calls {
            outln!("  {phase}: {}", spread(call, durations));
        }
        let first = self.failures.first()?;
        Some(format!(
            "{phase}: {} calls of the normal user, the first with {first}",
            self.failures.len()
        ))
    }
}

fn spread(name: &str, mut durations: Vec<Duration>) -> String {
    durations.sort_unstable();
    let at = |percent: usize| {
        let index = durations.len().saturating_sub(1) * percent / 100;
        let duration = durations.get(index).copied().unwrap_or_default();
        duration.as_secs_f64() * 1e3
    };
    format!(
        "{name:<12} {:>6} calls, median {:.1} ms, p95 {:.1} ms, p99 {:.1} ms, max {:.1} ms",
        durations.len(),
        at(50),
        at(95),
        at(99),
        at(100)
    )
}
