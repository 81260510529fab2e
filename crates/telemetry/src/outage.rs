use std::fmt::Debug;
use std::time::{Duration, Instant};

use parking_lot::Mutex;

/// How often a failure that goes on is logged again.
const REMINDER: Duration = Duration::from_secs(30);
/// How soon after the last line the beginning of another outage is logged: something may fail and work in turns.
const MIN_PAUSE: Duration = Duration::from_secs(5);

/// Logs when something begins to fail and when it works again, instead of each failure: an outage must not push
/// everything else out of the log.
///
/// While it fails, there is one line every half a minute with the number of failures.
#[derive(Debug)]
pub struct Outage {
    failing: &'static str,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    since: Option<Instant>,
    failures: u64,
    /// Whether this outage was logged.
    is_known: bool,
    last_line: Option<Instant>,
}

impl Outage {
    /// Nothing has failed yet. `failing` says what fails, as in "due rows cannot be read".
    pub fn new(failing: &'static str) -> Self {
        let state = Mutex::default();
        Self { failing, state }
    }

    /// Records an attempt.
    pub fn record<T, E: Debug>(&self, result: &Result<T, E>) {
        match result {
            Ok(_) => self.end(),
            Err(error) => self.fail(error),
        }
    }

    /// How often it has failed in a row.
    pub fn failures(&self) -> u64 {
        self.state.lock().failures
    }

    /// Records a failure.
    pub fn fail(&self, error: &dyn Debug) {
        let Some((failures, since)) = self.state.lock().fail(Instant::now()) else {
            return;
        };
        let failing_s = since.as_secs();
        tracing::warn!(?error, failures, failing_s, "{}", self.failing);
    }

    /// Records a success.
    pub fn end(&self) {
        let Some((failures, since)) = self.state.lock().end(Instant::now()) else {
            return;
        };
        let failed_s = since.as_secs();
        tracing::info!(failures, failed_s, "it works again after: {}", self.failing);
    }
}

impl State {
    /// The failures so far and since when, if it is time for a line.
    fn fail(&mut self, now: Instant) -> Option<(u64, Duration)> {
        let since = *self.since.get_or_insert(now);
        self.failures += 1;
        let pause = if self.is_known { REMINDER } else { MIN_PAUSE };
        if self.last_line.is_some_and(|last| now - last < pause) {
            return None;
        }
        self.is_known = true;
        self.last_line = Some(now);
        Some((self.failures, now - since))
    }

    /// The failures and how long they lasted, if they were logged.
    fn end(&mut self, now: Instant) -> Option<(u64, Duration)> {
        let since = self.since.take()?;
        let failures = std::mem::take(&mut self.failures);
        std::mem::take(&mut self.is_known).then(|| (failures, now - since))
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use super::State;

    #[test]
    fn an_outage_has_a_line_at_its_beginning_at_its_end_and_every_half_minute() {
        let (mut state, start) = (State::default(), Instant::now());
        let at = |tenths: u64| start + Duration::from_millis(100 * tenths);
        assert_eq!(state.end(at(0)), None);
        let lines: Vec<_> = (0..1_000)
            .filter_map(|tenths| state.fail(at(tenths)))
            .collect();
        let expected = [(1, 0), (301, 30), (601, 60), (901, 90)];
        assert_eq!(lines, expected.map(|(n, s)| (n, Duration::from_secs(s))));
        assert_eq!(
            state.end(at(1_000)),
            Some((1_000, Duration::from_secs(100)))
        );
        assert_eq!(state.end(at(1_001)), None);
        assert_eq!(state.fail(at(1_100)), Some((1, Duration::ZERO)));
    }

    #[test]
    fn what_fails_and_works_in_turns_has_few_lines() {
        let (mut state, start) = (State::default(), Instant::now());
        let mut lines = 0;
        for tenths in 0..600 {
            let now = start + Duration::from_millis(100 * tenths);
            lines += usize::from(state.fail(now).is_some());
            lines += usize::from(state.end(now).is_some());
        }
        assert_eq!(lines, 2 * 12);
    }
}
