//! Who decides a task whose creator restricts that.

use crate::status::Deciders;
use crate::tasks::store::Task;

/// What an actor has to decide a task with.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Claim {
    /// The confirmed address of the approver.
    pub(super) address: bool,
    /// The secret of the approver's link.
    pub(super) link: bool,
    /// The right of an administrator who wants to override `deciders`.
    pub(super) overrides: bool,
    /// The actor created or requested the task.
    pub(super) is_own: bool,
}

impl Task {
    /// Whether not everyone decides the task who may by default. Its creator is then told a secret that only opens it.
    pub(crate) fn is_restricted(&self) -> bool {
        is_restricted(self.deciders, self.self_approval)
    }

    /// Whether the actor does not decide this task, although approvers, creators and administrators may by default.
    pub(super) fn bars(&self, claim: Claim) -> bool {
        let is_named = match self.deciders {
            None => true,
            Some(Deciders::Approver) => claim.address || claim.link || claim.overrides,
            Some(Deciders::SignedIn) => claim.address || claim.overrides,
        };
        !is_named || (claim.is_own && !self.self_approval)
    }
}

/// Whether a task with these fields is restricted.
pub(super) fn is_restricted(deciders: Option<Deciders>, self_approval: bool) -> bool {
    deciders.is_some() || !self_approval
}
