//! Who may do what to a task: the one place for these rules.

use audit_log::AuthMethod;
use auth::Caller;
use values::{Fingerprint, UserId};

use crate::tasks::Task;

/// Who acts: the user of a token, whoever holds a secret, or both at once.
#[derive(Debug, Clone, Default)]
pub(crate) struct Actor {
    caller: Option<Caller>,
    secrets: Vec<Fingerprint>,
}

/// What somebody can do to a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Action {
    /// See the task and its webhooks.
    Read,
    /// Change any field.
    Edit,
    /// Change `approver` and nothing else.
    HandOver,
    /// Approve or reject.
    Decide,
    /// Register a webhook.
    RegisterWebhook,
    /// Delete a webhook.
    DeleteWebhook,
    /// See the deliveries, and send one again.
    SeeDeliveries,
}

/// What somebody is to a task; any of these may hold together.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Relations {
    /// The user whose token created the task.
    pub(crate) creator: bool,
    /// By e-mail address or by the approver's secret.
    pub(crate) approver: bool,
    /// By e-mail address or by the requester's secret.
    pub(crate) requester: bool,
    /// A token with the scope `admin`.
    pub(crate) admin: bool,
    /// Any signed-in user, when the task is public.
    pub(crate) public_reader: bool,
    /// The user who registered the webhook in question.
    pub(crate) registrant: bool,
}

/// Why somebody may not act.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Denied {
    /// May not know that the task exists.
    Hidden,
    /// May read the task, but not do this.
    Forbidden,
}

impl Actor {
    /// Whoever comes with this token and these secrets.
    pub(crate) fn new(caller: Option<Caller>, secrets: Vec<Fingerprint>) -> Self {
        Self { caller, secrets }
    }

    /// Whether there is neither a token nor a secret.
    pub(crate) fn is_nobody(&self) -> bool {
        self.caller.is_none() && self.secrets.is_empty()
    }

    /// The user of the token, if there is one.
    pub(crate) fn user(&self) -> Option<UserId> {
        self.caller.as_ref().map(Caller::id)
    }

    /// The e-mail address that relations of the token's user go by, in lower case.
    pub(crate) fn email_key(&self) -> Option<String> {
        self.caller.as_ref()?.normalized_email()
    }

    /// The fingerprints of the secrets that were shown.
    pub(crate) fn secrets(&self) -> &[Fingerprint] {
        &self.secrets
    }

    /// Whether the token holds the scope `admin`.
    pub(crate) fn is_admin(&self) -> bool {
        self.caller.as_ref().is_some_and(Caller::is_admin)
    }

    /// Adds a secret that came later, in the body.
    pub(crate) fn and_secret(mut self, secret: Option<Fingerprint>) -> Self {
        self.secrets.extend(secret);
        self
    }

    /// What this actor is to a task.
    pub(crate) fn relations_to(&self, task: &Task) -> Relations {
        self.relations_by(&self.secrets, task)
    }

    /// Who this is and by what it may do something to a task, for the audit log: by the token, if that is
    /// enough, else by a secret.
    pub(crate) fn proof_for(&self, task: &Task, action: Action) -> (audit_log::Actor, AuthMethod) {
        let by_token = self.caller.is_some() && self.relations_by(&[], task).allow(action);
        let by_secret = !by_token && self.relations_to(task).allow(action);
        let proof = if by_secret {
            AuthMethod::TaskSecret
        } else {
            AuthMethod::Token
        };
        let who = match &self.caller {
            Some(caller) => caller.into(),
            None if self.holds_approver_secret(task, action) => audit_log::Actor::ApproverSecret,
            None => audit_log::Actor::RequesterSecret,
        };
        (who, proof)
    }

    fn holds_approver_secret(&self, task: &Task, action: Action) -> bool {
        let approver = Relations {
            approver: true,
            ..Relations::default()
        };
        let mut secrets = self.secrets.iter();
        secrets.any(|secret| secret.matches(&task.approver_secret)) && approver.allow(action)
    }

    fn relations_by(&self, secrets: &[Fingerprint], task: &Task) -> Relations {
        let email = self.email_key();
        let has_email = |key: &str| email.as_deref() == Some(key);
        let holds = |stored: &[u8]| secrets.iter().any(|secret| secret.matches(stored));
        Relations {
            creator: self.user() == Some(task.creator),
            approver: has_email(&task.approver_key) || holds(&task.approver_secret),
            requester: has_email(&task.requester_key) || holds(&task.requester_secret),
            admin: self.is_admin(),
            public_reader: task.public && self.caller.is_some(),
            registrant: false,
        }
    }
}

impl Relations {
    /// The table: which relations are enough for an action.
    pub(crate) fn allow(self, action: Action) -> bool {
        let Self {
            creator,
            approver,
            requester,
            admin,
            public_reader,
            registrant,
        } = self;
        match action {
            Action::Read => creator || approver || requester || admin || public_reader,
            Action::Edit => creator || requester || admin,
            Action::HandOver | Action::RegisterWebhook => creator || approver || requester || admin,
            Action::Decide => creator || approver || admin,
            Action::DeleteWebhook => creator || admin || registrant,
            Action::SeeDeliveries => creator || admin,
        }
    }

    /// Decides about an action.
    ///
    /// # Errors
    /// [`Denied::Forbidden`] to a reader, [`Denied::Hidden`] to anybody else.
    pub(crate) fn check(self, action: Action) -> Result<(), Denied> {
        if self.allow(action) {
            Ok(())
        } else if self.allow(Action::Read) {
            Err(Denied::Forbidden)
        } else {
            Err(Denied::Hidden)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Action, Denied, Relations};

    const ACTIONS: [Action; 7] = [
        Action::Read,
        Action::Edit,
        Action::HandOver,
        Action::Decide,
        Action::RegisterWebhook,
        Action::DeleteWebhook,
        Action::SeeDeliveries,
    ];

    fn nobody() -> Relations {
        Relations::default()
    }

    #[test]
    fn the_table_of_relations_and_actions() {
        // Columns in the order of ACTIONS.
        #[rustfmt::skip]
        let table = [
            ("creator", Relations { creator: true, ..nobody() }, "y y y y y y y"),
            ("approver", Relations { approver: true, ..nobody() }, "y n y y y n n"),
            ("requester", Relations { requester: true, ..nobody() }, "y y y n y n n"),
            ("admin", Relations { admin: true, ..nobody() }, "y y y y y y y"),
            ("reader of a public task", Relations { public_reader: true, ..nobody() }, "y n n n n n n"),
            ("registrant", Relations { registrant: true, ..nobody() }, "n n n n n y n"),
            ("stranger", nobody(), "n n n n n n n"),
        ];
        for (who, relations, row) in table {
            for (action, expected) in ACTIONS.into_iter().zip(row.split(' ')) {
                assert_eq!(
                    relations.allow(action),
                    expected == "y",
                    "{who} and {action:?}"
                );
            }
        }
    }

    #[test]
    fn a_reader_is_told_no_and_a_stranger_nothing() {
        let reader = Relations {
            public_reader: true,
            ..nobody()
        };
        assert_eq!(reader.check(Action::Decide), Err(Denied::Forbidden));
        assert_eq!(nobody().check(Action::Decide), Err(Denied::Hidden));
        assert_eq!(nobody().check(Action::Read), Err(Denied::Hidden));
    }
}
