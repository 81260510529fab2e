//! The calls that the demo engine received.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use anyhow::Context;
use local_stack::process::wait_until;
use serde_json::Value;

use rig::client::Client;

pub(super) const ARRIVAL_LIMIT: Duration = Duration::from_secs(60);
const MILLISECONDS_PER_DAY: i64 = 86_400_000;

pub(super) struct Engine {
    client: Client,
}

impl Engine {
    pub(super) fn new(url: &str) -> Self {
        Self {
            client: Client::new(url),
        }
    }

    /// Waits for an item that matches `query` and for which `pick` returns a value. Newer items come first.
    pub(super) fn wait_for<T>(
        &self,
        query: &str,
        mut pick: impl FnMut(&Value) -> Option<T>,
    ) -> anyhow::Result<T> {
        let arrived = wait_until(ARRIVAL_LIMIT, || match self.client.received(query) {
            Ok(items) => items.iter().rev().find_map(&mut pick).map(Ok),
            Err(error) => Some(Err(error)),
        });
        arrived.with_context(|| {
            let limit = ARRIVAL_LIMIT.as_secs();
            format!("the demo engine received nothing for {query} within {limit} s")
        })?
    }
}

/// Returns the milliseconds from `from` to a time of the form `…THH:MM:SS.mmm…` less than half a day away.
pub(super) fn milliseconds_between(from: SystemTime, to: &str) -> Option<i64> {
    let (_, time) = to.split_once('T')?;
    let mut parts = time.get(..12)?.split([':', '.']);
    let mut next = || parts.next()?.parse::<i64>().ok();
    let to = ((next()? * 60 + next()?) * 60 + next()?) * 1000 + next()?;
    let from = i64::try_from(from.duration_since(UNIX_EPOCH).ok()?.as_millis()).ok()?
        % MILLISECONDS_PER_DAY;
    let half = MILLISECONDS_PER_DAY / 2;
    Some((to - from + half).rem_euclid(MILLISECONDS_PER_DAY) - half)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_subtracted_across_midnight() {
        let noon = UNIX_EPOCH + Duration::from_secs(12 * 3600);
        let before_midnight = UNIX_EPOCH + Duration::from_millis(86_399_990);
        for (from, to, expected) in [
            (noon, "2026-01-01T12:00:00.025Z", Some(25)),
            (noon, "2026-01-01T11:59:59.990Z", Some(-10)),
            (before_midnight, "2026-01-02T00:00:00.010Z", Some(20)),
            (noon, "soon", None),
        ] {
            assert_eq!(milliseconds_between(from, to), expected, "{to}");
        }
    }
}
