//! Whether this worker may take another one for dead.

use std::time::{Duration, Instant};

/// A worker that was cut off from the database itself cannot tell a dead worker from one that was cut off with it. So it
/// first must have seen, without interruption, that the others had the time to beat again.
#[derive(Debug)]
pub(super) struct Judgement {
    silence: Duration,
    /// Since when every beat has succeeded.
    since: Option<Instant>,
    last_success: Option<Instant>,
    /// How long they must have.
    required: Duration,
}

impl Judgement {
    /// For workers that are taken for dead after this silence.
    pub(super) fn new(silence: Duration) -> Self {
        Self {
            silence,
            since: None,
            last_success: None,
            required: silence,
        }
    }

    /// A beat failed. Others may need longer than this worker to connect again.
    pub(super) fn failed(&mut self) {
        self.since = None;
        self.required = self.silence * 2;
    }

    /// A beat that started at this time succeeded. Returns whether silent workers are dead.
    pub(super) fn succeeded(&mut self, at: Instant) -> bool {
        // This process was paused, and perhaps the machine with all workers.
        if self
            .last_success
            .is_some_and(|last| at - last > self.silence / 2)
        {
            self.failed();
        }
        self.last_success = Some(at);
        at - *self.since.get_or_insert(at) >= self.required
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use super::Judgement;

    const SILENCE: Duration = Duration::from_secs(2);
    const BEAT: Duration = Duration::from_millis(500);

    /// Beats until the worker may judge, and returns how long this took.
    fn time_to_judge(judgement: &mut Judgement, now: &mut Instant) -> Duration {
        let start = *now;
        while !judgement.succeeded(*now) {
            *now += BEAT;
        }
        *now - start
    }

    #[test]
    fn a_worker_judges_once_it_has_watched_the_others_for_as_long_as_the_silence() {
        let mut judgement = Judgement::new(SILENCE);
        let mut now = Instant::now();
        assert_eq!(time_to_judge(&mut judgement, &mut now), SILENCE);
        assert!(judgement.succeeded(now + BEAT));
    }

    #[test]
    fn after_an_outage_or_a_pause_it_watches_them_twice_as_long() {
        let mut judgement = Judgement::new(SILENCE);
        let mut now = Instant::now();
        time_to_judge(&mut judgement, &mut now);
        judgement.failed();
        now += BEAT;
        assert_eq!(time_to_judge(&mut judgement, &mut now), 2 * SILENCE);
        now += 3 * BEAT;
        assert_eq!(time_to_judge(&mut judgement, &mut now), 2 * SILENCE);
    }
}
