//! Permissions as values that a statement compares with tasks, so that it can judge tasks and change them at once.

use values::{Fingerprint, UserId};

use crate::audit::AuditIdentity;
use crate::tasks::access::{Actor, Permission, Relations};

/// What gives an actor a permission: at least one of these values must be the task's. The rules are those of
/// [`Relations::allow`].
#[derive(Debug, Clone, Default)]
pub(crate) struct Grant {
    /// The permission holds for every task.
    pub(crate) any_task: bool,
    pub(crate) creator: Option<UserId>,
    pub(crate) approver_key: Option<String>,
    pub(crate) requester_key: Option<String>,
    approver_secret: Option<Fingerprint>,
    requester_secret: Option<Fingerprint>,
}

/// The condition that a row of `tasks` gives the permission of a row of `given`, which has the columns of a [`Grant`].
macro_rules! granted {
    () => {
        "(given.any_task OR tasks.creator = given.creator OR tasks.approver_key = given.approver_key
            OR tasks.requester_key = given.requester_key OR tasks.approver_secret = given.approver_secret
            OR tasks.requester_secret = given.requester_secret)"
    };
}

pub(crate) use granted;

impl Grant {
    /// The fingerprint of the approver's secret, as stored in the database.
    pub(crate) fn approver_secret(&self) -> Option<&[u8]> {
        Some(self.approver_secret.as_ref()?.as_bytes())
    }

    /// The fingerprint of the requester's secret, as stored in the database.
    pub(crate) fn requester_secret(&self) -> Option<&[u8]> {
        Some(self.requester_secret.as_ref()?.as_bytes())
    }

    /// For a permission that was judged before, under the lock of the task.
    pub(crate) fn any_task() -> Self {
        Self {
            any_task: true,
            ..Self::default()
        }
    }

    /// What gives an actor a permission, and who this is for the audit log; `None` if that depends on the task.
    pub(crate) fn of(actor: &Actor, permission: Permission) -> Option<(Self, AuditIdentity)> {
        let identity = actor.sole_identity(permission)?;
        let allows = |relations: Relations| relations.allow(permission);
        let none = Relations::default;
        let admin = allows(Relations {
            admin: true,
            ..none()
        });
        let creator = allows(Relations {
            creator: true,
            ..none()
        });
        let approver = allows(Relations {
            approver: true,
            ..none()
        });
        let requester = allows(Relations {
            requester: true,
            ..none()
        });
        let email = actor.normalized_email();
        let secret = actor.secrets().first().map(|secret| secret.fingerprint);
        let grant = Self {
            any_task: admin && actor.is_admin(),
            creator: actor.user().filter(|_| creator),
            approver_key: email.clone().filter(|_| approver),
            requester_key: email.filter(|_| requester),
            approver_secret: secret.filter(|_| approver),
            requester_secret: secret.filter(|_| requester),
        };
        Some((grant, identity))
    }
}

#[cfg(test)]
mod tests {
    use crate::tasks::access::{Permission, Relations};

    /// A grant compares the relations one by one, so a permission must be given by each of them alone or not at all.
    #[test]
    fn a_permission_is_given_by_single_relations() {
        let relations = |set: u8| Relations {
            creator: set & 1 != 0,
            approver: set & 2 != 0,
            requester: set & 4 != 0,
            admin: set & 8 != 0,
            ..Relations::default()
        };
        for permission in [Permission::Decide, Permission::RegisterWebhook] {
            for set in 0..16 {
                let single = (0..4).map(|bit| set & (1 << bit)).filter(|one| *one != 0);
                let by_one = single
                    .into_iter()
                    .any(|one| relations(one).allow(permission));
                assert_eq!(
                    relations(set).allow(permission),
                    by_one,
                    "{permission:?} {set:b}"
                );
            }
            let others = Relations {
                public_reader: true,
                registrant: true,
                ..Relations::default()
            };
            assert!(!others.allow(permission), "{permission:?}");
        }
    }
}
