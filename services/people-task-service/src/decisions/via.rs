use audit_log::AuthMethod;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::tasks::Task;
use crate::tasks::access::{Actor, Permission};

/// How a task was decided.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct DecidedVia {
    /// What the decision was authenticated with.
    r#type: Credential,
    /// Whether an administrator decided instead of those who should. Absent if not.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) r#override: bool,
}

/// What a decision was authenticated with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
enum Credential {
    /// The token of a signed-in user.
    Token,
    /// A secret of the task, as links have it.
    TaskSecret,
}

impl DecidedVia {
    /// How an actor decides a task who has this permission on it.
    pub(super) fn of(actor: &Actor, task: &Task, permission: Permission) -> Self {
        let (_, method) = actor.audit_identity(task, permission);
        Self {
            r#type: if method == AuthMethod::TaskSecret {
                Credential::TaskSecret
            } else {
                Credential::Token
            },
            r#override: actor.is_overriding(task, permission),
        }
    }
}
