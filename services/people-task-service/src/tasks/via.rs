use audit_log::AuthMethod;
use auth::Caller;
use serde::Serialize;
use utoipa::ToSchema;
use values::CredentialId;

use crate::tasks::access::{Actor, Permission};
use crate::tasks::store::Task;

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
        let key = actor.caller().and_then(Caller::key);
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
