use std::time::Duration;

/// One attack: what it does again and again, and how often at once.
pub(super) struct Attack {
    pub(super) name: &'static str,
    /// Parallel loops.
    pub(super) loops: usize,
    /// The shortest time from one round of a loop to the next.
    pub(super) interval: Duration,
}
