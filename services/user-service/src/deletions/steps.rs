/// A step of a deletion. All can be repeated without harm.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// The flow engine stops the user's running flows.
    StopFlows,
    /// The flow engine deletes the user's flows.
    DeleteFlows,
    /// The flow engine deletes the user's logs.
    DeleteLogs,
    /// The flow engine deletes the user's accounts.
    DeleteAccounts,
    /// The flow engine deletes the user's tokens.
    DeleteTokens,
    /// The people-task service deletes the tasks that the user created or requested.
    DeletePeopleTasks,
    /// The user's codes, notifications and sign-in records are deleted.
    DeleteSignInData,
    /// The user's row is deleted.
    DeleteUser,
}

impl Step {
    const ENGINE: [Self; 5] = [
        Self::StopFlows,
        Self::DeleteFlows,
        Self::DeleteLogs,
        Self::DeleteAccounts,
        Self::DeleteTokens,
    ];
    const OWN: [Self; 3] = [
        Self::DeletePeopleTasks,
        Self::DeleteSignInData,
        Self::DeleteUser,
    ];

    /// The steps of a new deletion, in order; those of the engine only if one is configured.
    #[must_use]
    pub fn for_new_deletion(with_engine: bool) -> Vec<Self> {
        let engine = if with_engine { &Self::ENGINE[..] } else { &[] };
        engine.iter().chain(&Self::OWN).copied().collect()
    }

    /// The name in the database, in problems and in logs.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::StopFlows => "stop-flows",
            Self::DeleteFlows => "delete-flows",
            Self::DeleteLogs => "delete-logs",
            Self::DeleteAccounts => "delete-accounts",
            Self::DeleteTokens => "delete-tokens",
            Self::DeletePeopleTasks => "delete-people-tasks",
            Self::DeleteSignInData => "delete-sign-in-data",
            Self::DeleteUser => "delete-user",
        }
    }

    /// The step of a name; `None` for one that this version does not know.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        let mut all = Self::ENGINE.iter().chain(&Self::OWN);
        all.find(|step| step.name() == name).copied()
    }
}

#[cfg(test)]
mod tests {
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
