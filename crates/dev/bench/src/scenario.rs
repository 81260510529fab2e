//! Two scenarios: decisions as fast as possible, and at a steady rate.

use std::time::{Duration, Instant};

use anyhow::Context as _;
use futures_util::{StreamExt as _, TryStreamExt as _, stream};

use crate::caller::{Caller, PreparedTask};
use crate::figures::{rate, spread};
use crate::receivers::Receivers;

/// Decisions as fast as possible.
pub(crate) struct Burst {
    pub(crate) tasks: usize,
    pub(crate) webhooks: usize,
    pub(crate) concurrency: usize,
    /// The pause before the measurement.
    pub(crate) pause: Duration,
}

impl Burst {
    pub(crate) async fn measure(
        &self,
        caller: &Caller,
        receivers: &Receivers,
    ) -> anyhow::Result<Vec<String>> {
        if self.tasks == 0 {
            return Ok(Vec::new());
        }
        let preparing = Instant::now();
        let prepared = caller.prepare(self.tasks, self.webhooks, receivers).await?;
        let prepared_in = preparing.elapsed();
        tokio::time::sleep(self.pause).await;
        let start = Instant::now();
        let calls = stream::iter(&prepared)
            .map(|task| async move {
                let called = Instant::now();
                caller.approve(&task.task).await?;
                anyhow::Ok(called.elapsed())
            })
            .buffer_unordered(self.concurrency.max(1))
            .try_collect::<Vec<_>>()
            .await?;
        let accepted = start.elapsed();
        let keys = keys(&prepared);
        let arrived = receivers.wait_for(&keys).await?;
        let last = arrived.values().max().context("no webhook arrived")?;
        let calls_made = self.tasks * (1 + self.webhooks);
        Ok(vec![
            rate(
                "prepared (one call for each task and webhook)",
                calls_made,
                prepared_in,
            ),
            rate("decisions accepted", self.tasks, accepted),
            spread("duration of a call", calls),
            rate(
                "webhooks delivered",
                keys.len(),
                last.saturating_duration_since(start),
            ),
            format!("delivered twice: {}", receivers.take_repeated()),
        ])
    }
}

/// Decisions at a steady rate.
pub(crate) struct Steady {
    pub(crate) tasks: usize,
    pub(crate) interval: Duration,
}

impl Steady {
    pub(crate) async fn measure(
        &self,
        caller: &Caller,
        receivers: &Receivers,
    ) -> anyhow::Result<Vec<String>> {
        if self.tasks == 0 {
            return Ok(Vec::new());
        }
        let prepared = caller.prepare(self.tasks, 1, receivers).await?;
        let mut tick = tokio::time::interval(self.interval);
        let (mut called, mut durations) = (Vec::new(), Vec::new());
        for task in &prepared {
            tick.tick().await;
            let start = Instant::now();
            caller.approve(&task.task).await?;
            called.push(start);
            durations.push(start.elapsed());
        }
        let arrived = receivers.wait_for(&keys(&prepared)).await?;
        let latencies = prepared.iter().zip(&called).filter_map(|(task, called)| {
            let arrival = arrived.get(task.keys.first()?)?;
            Some(arrival.saturating_duration_since(*called))
        });
        Ok(vec![
            spread("duration of a call", durations),
            spread("from the call to the receiver", latencies.collect()),
            format!("delivered twice: {}", receivers.take_repeated()),
        ])
    }
}

fn keys(prepared: &[PreparedTask]) -> Vec<String> {
    prepared
        .iter()
        .flat_map(|task| task.keys.iter().cloned())
        .collect()
}
