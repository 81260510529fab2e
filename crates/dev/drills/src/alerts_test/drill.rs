//! What a step works with while its alerts are awaited.

use std::{
    sync::atomic::{AtomicBool, Ordering},
    thread,
    time::{Duration, Instant},
};

use anyhow::Context as _;
use local_stack::process::wait_until;

use super::{prometheus::Prometheus, system::System};

/// A step under way. It keeps up its condition until [`Drill::is_over`], so that it depends on no machine's speed.
pub(super) struct Drill<'a> {
    pub(super) system: &'a System,
    prometheus: &'a Prometheus,
    begin: Instant,
    limit: Duration,
    is_finished: AtomicBool,
}

impl<'a> Drill<'a> {
    pub(super) fn begin(system: &'a System, prometheus: &'a Prometheus, limit: Duration) -> Self {
        Self {
            system,
            prometheus,
            begin: Instant::now(),
            limit,
            is_finished: AtomicBool::new(false),
        }
    }

    pub(super) fn elapsed(&self) -> Duration {
        self.begin.elapsed()
    }

    pub(super) fn left(&self) -> Duration {
        self.limit.saturating_sub(self.elapsed())
    }

    /// All alerts of the step fire.
    pub(super) fn finish(&self) {
        self.is_finished.store(true, Ordering::Release);
    }

    /// Whether the condition is no longer needed.
    pub(super) fn is_over(&self) -> bool {
        self.is_finished.load(Ordering::Acquire) || self.left().is_zero()
    }

    /// Repeats an action every second until the step is over.
    pub(super) fn keep_up(
        &self,
        mut action: impl FnMut() -> anyhow::Result<()>,
    ) -> anyhow::Result<()> {
        while !self.is_over() {
            action()?;
            thread::sleep(Duration::from_secs(1));
        }
        Ok(())
    }

    /// Waits until Prometheus has read another value of a metric than `before`.
    pub(super) fn wait_for_change(&self, query: &str, before: Option<f64>) -> anyhow::Result<()> {
        let changed = || self.value(query).filter(|value| Some(*value) != before);
        let changed = wait_until(self.left(), changed);
        changed.with_context(|| format!("Prometheus has read no new value of {query}"))?;
        Ok(())
    }

    /// The value that Prometheus has of a query.
    pub(super) fn value(&self, query: &str) -> Option<f64> {
        self.prometheus.query(query)
    }
}
