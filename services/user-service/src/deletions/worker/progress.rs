use std::time::Duration;

/// The pause when other transactions hold all rows that are left.
pub(super) const BLOCKED_PAUSE: Duration = Duration::from_secs(1);

/// What a part of a step achieved.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Progress {
    /// The step is done; that is not recorded yet.
    Done,
    /// The step is done and the job has ended; both are recorded.
    Completed,
    /// The step has more to do.
    More,
    /// Another system is still working on the step; execute it again after this pause.
    Waiting(Duration),
    /// The claim on the job was lost.
    Lost,
}
