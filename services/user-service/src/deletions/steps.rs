use std::time::Duration;

use values::Names as _;

values::names! {
    /// A step of a deletion. All can be repeated without harm.
    pub enum Step {
        /// The flow engine stops the user's running flows.
        StopFlows = "stop-flows",
        /// The flow engine deletes the user's flows.
        DeleteFlows = "delete-flows",
        /// The flow engine deletes the user's logs.
        DeleteLogs = "delete-logs",
        /// The flow engine deletes the user's accounts.
        DeleteAccounts = "delete-accounts",
        /// The flow engine deletes the user's tokens.
        DeleteTokens = "delete-tokens",
        /// The people-task service deletes the tasks that the user created or requested.
        DeletePeopleTasks = "delete-people-tasks",
        /// The user's codes, notifications, sessions and sign-in records are deleted.
        DeleteSignInData = "delete-sign-in-data",
        /// Tasks that were added since their step are deleted, and then the user's row.
        DeleteUser = "delete-user",
    }
}

impl Step {
    /// The steps of a new deletion, in order; those of the engine only if one is configured.
    #[must_use]
    pub fn for_new_deletion(with_engine: bool) -> Vec<Self> {
        let steps = Self::ALL.iter().copied();
        steps
            .filter(|step| with_engine || !step.is_of_engine())
            .collect()
    }

    pub(super) fn is_of_engine(self) -> bool {
        !matches!(
            self,
            Self::DeletePeopleTasks | Self::DeleteSignInData | Self::DeleteUser
        )
    }
}

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

impl Progress {
    /// Other transactions hold all rows that are left.
    pub(super) const BLOCKED: Self = Self::Waiting(Duration::from_secs(1));
}

#[cfg(test)]
mod tests {
    use values::Names as _;

    use super::Step;

    #[test]
    fn every_step_is_parsed_from_its_name() {
        for step in Step::for_new_deletion(true) {
            assert_eq!(Step::from_name(step.name()), Some(step));
        }
        assert_eq!(Step::from_name("delete-everything"), None);
        assert_eq!(Step::for_new_deletion(false).len(), 3);
    }
}
