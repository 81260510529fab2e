use std::fmt::Debug;
use std::time::Duration;

/// The pause between two looks at the changes.
const PAUSE: Duration = Duration::from_secs(1);
/// The longest pause in an outage.
const MAX_PAUSE: Duration = Duration::from_secs(30);

/// An outage during which attempts become rarer.
#[derive(Debug)]
pub(super) struct Outage {
    log: telemetry::Outage,
    /// Zero while there is no outage.
    pause: Duration,
}

impl Outage {
    /// Nothing has failed yet. `failing` says what fails.
    pub(super) fn new(failing: &'static str) -> Self {
        Self {
            log: telemetry::Outage::new(failing),
            pause: Duration::ZERO,
        }
    }

    pub(super) fn end(&mut self) {
        self.log.end();
        self.pause = Duration::ZERO;
    }

    pub(super) fn go_on(&mut self, error: &dyn Debug) {
        self.log.fail(error);
        self.pause = (self.pause * 2).clamp(PAUSE, MAX_PAUSE);
    }

    pub(super) fn is_on(&self) -> bool {
        !self.pause.is_zero()
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
        let mut outage = Outage::new("a test");
        for expected in [1, 2, 4, 8, 16, 30, 30] {
            outage.go_on(&"no connection");
            assert!(outage.is_on());
            assert_eq!(outage.pause.as_secs(), expected);
        }
        outage.end();
        assert!(!outage.is_on() && outage.pause() < Duration::from_secs(2));
    }
}
