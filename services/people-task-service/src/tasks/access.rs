//! Who may do what to a task: the one place for these rules.

use audit_log::AuthMethod;
use auth::{Caller, KeyScope};
use serde::Serialize;
use utoipa::ToSchema;
use values::{CredentialId, UserId};

use crate::audit::AuditIdentity;
use crate::error::TaskError;
use crate::status::Deciders;
use crate::tasks::secrets::PresentedSecret;
use crate::tasks::store::Task;

/// Who acts: the user of a token, the holder of task secrets, or both.
#[derive(Debug, Clone, Default)]
pub(crate) struct Actor {
    /// The user of the token, as it says.
    pub(crate) caller: Option<Caller>,
    pub(super) secrets: Vec<PresentedSecret>,
    /// Whether an administrator wants to decide a task, or to name its approver, instead of those who should.
    pub(super) overrides: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Permission {
    /// See the task and its webhooks.
    Read,
    Edit,
    /// Change `approver` and nothing else.
    Reassign,
    Decide,
    RegisterWebhook,
    DeleteWebhook,
    /// See the whole URL of a webhook, which may be all that it takes to call its receiver.
    SeeWebhookUrl,
    /// See the deliveries, and send one again.
    ViewDeliveries,
    /// See the secret that an edit creates for a new approver or requester. A secret is a permission: a
    /// requester could decide with it, and an approver who hands over would keep the decision. So could an administrator's
    /// key that may not decide; that of a task's creator gets the secrets of the task when it creates it anyway.
    SeeNewSecrets,
    /// See and change what the creator keeps with the task.
    Metadata,
    Cancel,
}

/// How an actor is related to a task. Several may hold at once.
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
    /// Acts by an API key that lacks `tasks:decide`.
    pub(crate) undeciding_key: bool,
    /// Any signed-in user, when the task is public, and the holder of a secret that only opens it.
    pub(crate) reader: bool,
    /// The user who registered the webhook in question.
    pub(crate) registrant: bool,
    /// Does not decide the task, because its creator has restricted who does.
    pub(crate) barred: bool,
}

impl Actor {
    pub(crate) fn new(caller: Option<Caller>, secrets: Vec<PresentedSecret>) -> Self {
        Self {
            caller,
            secrets,
            overrides: false,
        }
    }

    pub(crate) fn user(&self) -> Option<UserId> {
        self.caller.as_ref().map(Caller::id)
    }

    /// Who shares what users share.
    pub(crate) fn owner(&self) -> Option<UserId> {
        self.caller.as_ref().map(Caller::owner)
    }

    /// The e-mail address of the token's user, in lower case.
    pub(crate) fn normalized_email(&self) -> Option<String> {
        self.caller.as_ref()?.normalized_email()
    }

    pub(crate) fn secrets(&self) -> &[PresentedSecret] {
        &self.secrets
    }

    pub(crate) fn is_admin(&self) -> bool {
        self.caller.as_ref().is_some_and(Caller::is_admin)
    }

    /// Whether this actor may do so only because an administrator may override who decides.
    pub(crate) fn is_overriding(&self, task: &Task, permission: Permission) -> bool {
        let usual = Self {
            overrides: false,
            ..self.clone()
        };
        self.overrides && !usual.relations_to(task).allow(permission)
    }

    pub(crate) fn relations_to(&self, task: &Task) -> Relations {
        self.relations_by(&self.secrets, task)
    }

    /// Who this is and how the actor was authenticated for a permission, for the audit log: by the token if
    /// that is enough, otherwise by a secret.
    pub(crate) fn audit_identity(&self, task: &Task, permission: Permission) -> AuditIdentity {
        let by_token = self.caller.is_some() && self.relations_by(&[], task).allow(permission);
        let relations = self.relations_to(task);
        let by_secret = !by_token && relations.allow(permission);
        let method = if by_secret {
            AuthMethod::TaskSecret
        } else {
            AuthMethod::Token
        };
        let as_approver = Relations {
            approver: relations.approver,
            ..Relations::default()
        };
        let actor = match &self.caller {
            Some(caller) => caller.into(),
            None if as_approver.allow(permission) => audit_log::Actor::ApproverSecret,
            None => audit_log::Actor::RequesterSecret,
        };
        (actor, method)
    }

    fn relations_by(&self, secrets: &[PresentedSecret], task: &Task) -> Relations {
        let email = self.normalized_email();
        let has_email = |key: &str| email.as_deref() == Some(key);
        let holds = |stored: &[u8]| {
            secrets
                .iter()
                .any(|secret| secret.fingerprint.matches(stored))
        };
        let creator = self.user() == Some(task.creator);
        let is_approver = has_email(&task.approver_key);
        let is_requester = has_email(&task.requester_key);
        let has_link = holds(&task.approver_secret);
        let opens = task.reading_secret.as_deref().is_some_and(holds);
        let caller = self.caller.as_ref();
        let is_service = caller.is_some_and(Caller::is_service);
        let undeciding_key = caller.is_some_and(|caller| !caller.may(KeyScope::TasksDecide));
        let overrides = self.overrides && self.is_admin() && !undeciding_key;
        // No one has confirmed the address of a service account.
        let is_unconfirmed = is_approver && is_service && !self.is_admin();
        let is_own = creator || is_requester || is_unconfirmed;
        let is_decider = match task.deciders {
            None => true,
            Some(_) if overrides || (is_approver && !is_service) => true,
            Some(Deciders::Approver) => has_link,
            Some(Deciders::SignedIn) => false,
        };
        Relations {
            creator,
            approver: is_approver || has_link,
            requester: is_requester || holds(&task.requester_secret),
            admin: self.is_admin(),
            undeciding_key,
            reader: opens || (task.public && self.caller.is_some()),
            registrant: false,
            barred: !is_decider || (is_own && !task.self_approval),
        }
    }
}

impl Relations {
    /// The table of rules: which relations grant a permission.
    pub(crate) fn allow(self, permission: Permission) -> bool {
        let manages = self.creator || self.admin;
        let decides = self.creator || (self.admin && !self.undeciding_key);
        let takes_part = manages || self.approver || self.requester;
        match permission {
            Permission::Read => takes_part || self.reader,
            Permission::Edit | Permission::Cancel => manages || self.requester,
            Permission::Reassign | Permission::RegisterWebhook => takes_part,
            Permission::Decide => (decides || self.approver) && !self.barred,
            Permission::DeleteWebhook | Permission::SeeWebhookUrl => manages || self.registrant,
            Permission::ViewDeliveries | Permission::Metadata => manages,
            Permission::SeeNewSecrets => decides,
        }
    }

    /// Checks a permission.
    ///
    /// # Errors
    /// [`TaskError::Forbidden`] for a reader, [`TaskError::NotFound`] for anyone else.
    pub(crate) fn check(self, permission: Permission) -> Result<(), TaskError> {
        self.check_on("task", permission, TaskError::Forbidden)
    }

    /// Checks a permission on `what`, which is the task or belongs to it.
    ///
    /// # Errors
    /// `forbidden` for a reader, [`TaskError::NotFound`] for anyone else.
    pub(crate) fn check_on(
        self,
        what: &'static str,
        permission: Permission,
        forbidden: TaskError,
    ) -> Result<(), TaskError> {
        if self.allow(permission) {
            Ok(())
        } else if self.allow(Permission::Read) {
            Err(forbidden)
        } else {
            Err(TaskError::NotFound(what))
        }
    }
}

/// How a task was decided.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct DecidedVia {
    /// What the decision was authenticated with.
    r#type: Credential,
    /// The API key. Absent if it was none.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, nullable = false, example = "665f1c2ab3d4e5f60718293a")]
    key: Option<CredentialId>,
    /// Whether an administrator decided instead of those who should. Absent if not.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub(crate) r#override: bool,
}

/// What a decision was authenticated with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
enum Credential {
    /// The token of a signed-in user.
    Token,
    /// An API key.
    Key,
    /// A secret of the task, as links have it.
    TaskSecret,
}

impl DecidedVia {
    /// How an actor decides a task who has this permission on it.
    pub(crate) fn of(actor: &Actor, task: &Task, permission: Permission) -> Self {
        let (_, method) = actor.audit_identity(task, permission);
        let key = actor.caller.as_ref().and_then(Caller::key);
        let key = key.filter(|_| method == AuthMethod::Token);
        Self {
            r#type: match (method, key) {
                (_, Some(_)) => Credential::Key,
                (AuthMethod::TaskSecret, None) => Credential::TaskSecret,
                _ => Credential::Token,
            },
            key,
            r#override: actor.is_overriding(task, permission),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Permission, Relations};
    use crate::error::TaskError;

    const PERMISSIONS: [Permission; 11] = [
        Permission::Read,
        Permission::Edit,
        Permission::Reassign,
        Permission::Decide,
        Permission::RegisterWebhook,
        Permission::DeleteWebhook,
        Permission::SeeWebhookUrl,
        Permission::ViewDeliveries,
        Permission::SeeNewSecrets,
        Permission::Metadata,
        Permission::Cancel,
    ];

    fn stranger() -> Relations {
        Relations::default()
    }

    #[test]
    fn the_table_of_relations_and_actions() {
        // Columns in the order of PERMISSIONS.
        #[rustfmt::skip]
        let table = [
            ("creator", Relations { creator: true, ..stranger() }, "y y y y y y y y y y y"),
            ("approver", Relations { approver: true, ..stranger() }, "y n y y y n n n n n n"),
            ("requester", Relations { requester: true, ..stranger() }, "y y y n y n n n n n y"),
            ("admin", Relations { admin: true, ..stranger() }, "y y y y y y y y y y y"),
            ("admin's key that may not decide", Relations { admin: true, undeciding_key: true, ..stranger() }, "y y y n y y y y n y y"),
            ("creator's key that may not decide", Relations { creator: true, undeciding_key: true, ..stranger() }, "y y y y y y y y y y y"),
            ("reader of a public task", Relations { reader: true, ..stranger() }, "y n n n n n n n n n n"),
            ("creator of a restricted task", Relations { creator: true, barred: true, ..stranger() }, "y y y n y y y y y y y"),
            ("registrant", Relations { registrant: true, ..stranger() }, "n n n n n y y n n n n"),
            ("stranger", stranger(), "n n n n n n n n n n n"),
        ];
        for (name, relations, row) in table {
            for (permission, expected) in PERMISSIONS.into_iter().zip(row.split(' ')) {
                assert_eq!(
                    relations.allow(permission),
                    expected == "y",
                    "{name} and {permission:?}"
                );
            }
        }
    }

    #[test]
    fn a_reader_is_forbidden_and_the_task_is_hidden_from_a_stranger() {
        let reader = Relations {
            reader: true,
            ..stranger()
        };
        assert!(matches!(
            reader.check(Permission::Decide),
            Err(TaskError::Forbidden)
        ));
        for permission in [Permission::Decide, Permission::Read] {
            assert!(matches!(
                stranger().check(permission),
                Err(TaskError::NotFound("task"))
            ));
        }
    }
}
