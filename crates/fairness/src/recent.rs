use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;

/// Who asked for something last, from which follows whether an owner is alone or others are likely to ask, too.
#[derive(Debug)]
pub struct Recent<O> {
    /// How long an owner counts after it asked.
    window: Duration,
    /// The two owners that asked last, the latest one first. They tell for every owner whether there is another one.
    last: Mutex<[Option<(O, Instant)>; 2]>,
}

impl<O: PartialEq> Recent<O> {
    /// Lets an owner count for a time after it asked.
    pub fn new(window: Duration) -> Self {
        Self {
            window,
            last: Mutex::new([None, None]),
        }
    }

    /// An owner asks for something.
    pub fn record(&self, owner: O, now: Instant) {
        let mut last = self.last.lock();
        let [latest, before] = &mut *last;
        if latest.as_ref().is_some_and(|(other, _)| *other != owner) {
            *before = latest.take();
        }
        *latest = Some((owner, now));
    }

    /// Whether another owner than this one asked within the window.
    pub fn has_other_than(&self, owner: &O, now: Instant) -> bool {
        let last = self.last.lock();
        let mut asked = last.iter().flatten();
        asked.any(|(other, at)| other != owner && now.saturating_duration_since(*at) < self.window)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::time::Instant;

    use super::Recent;

    #[test]
    fn an_owner_counts_for_others_until_a_while_after_it_asked() {
        let window = Duration::from_secs(3);
        let (recent, start) = (Recent::new(window), Instant::now());
        recent.record(1, start);
        let later = start + Duration::from_secs(1);
        recent.record(2, later);
        recent.record(2, later);
        let competes = |owner, at| recent.has_other_than(&owner, at);
        assert!(competes(1, later) && competes(2, later) && competes(3, later));
        let end = start + window;
        assert_eq!((competes(1, end), competes(2, end)), (true, false));
        let end = later + window;
        assert!(!competes(1, end) && !competes(3, end));
    }
}
