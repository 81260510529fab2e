use std::fmt::Display;
use std::time::{Duration, Instant};

/// The pause between two looks at the changes.
const PAUSE: Duration = Duration::from_secs(1);
/// The longest pause in an outage.
const MAX_PAUSE: Duration = Duration::from_secs(30);

/// Whether something works that others need. One line in the log says when that changes.
#[derive(Debug)]
pub(super) struct Outage {
    what: &'static str,
    since: Option<Instant>,
    pause: Duration,
}

impl Outage {
    pub(super) fn none_of(what: &'static str) -> Self {
        Self {
            what,
            since: None,
            pause: Duration::ZERO,
        }
    }

    /// It works.
    pub(super) fn end(&mut self) {
        if let Some(since) = self.since.take() {
            let seconds = since.elapsed().as_secs();
            tracing::info!(seconds, "{} works again", self.what);
        }
        self.pause = Duration::ZERO;
    }

    /// It does not work.
    pub(super) fn go_on(&mut self, error: &dyn Display) {
        if self.since.is_none() {
            tracing::warn!(error = %error, "{} does not work, and is tried until it does", self.what);
            self.since = Some(Instant::now());
        }
        self.pause = (self.pause * 2).clamp(PAUSE, MAX_PAUSE);
    }

    pub(super) fn is_on(&self) -> bool {
        self.since.is_some()
    }

    /// The time to wait before the next look.
    pub(super) fn pause(&self) -> Duration {
        jobs::jitter(self.pause.max(PAUSE))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_grow_in_an_outage_and_end_with_it() {
        let mut outage = Outage::none_of("a test");
        for expected in [1, 2, 4, 8, 16, 30, 30] {
            outage.go_on(&"no connection");
            assert!(outage.is_on());
            assert_eq!(outage.pause.as_secs(), expected);
        }
        outage.end();
        assert!(!outage.is_on() && outage.pause() < Duration::from_secs(2));
    }
}
