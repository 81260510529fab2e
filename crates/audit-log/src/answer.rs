use serde::Serialize;
use serde_json::Value;
use utoipa::ToSchema;
use values::Timestamp;

use crate::store::Row;

/// What somebody did to a user or a task. It holds identifiers and the names of what changed, never a
/// value.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct AuditEntry {
    /// The row's number.
    #[schema(example = 4711)]
    id: i64,
    /// When it was done.
    #[schema(value_type = String, format = DateTime)]
    at: Timestamp,
    /// What was done.
    #[schema(example = "task-approved")]
    action: String,
    /// `user`, `admin` (a user by a token with that scope), `service` (one of the system's own processes),
    /// `approver-secret` or `requester-secret` (whoever holds that secret of the task), or `anonymous`.
    #[schema(example = "user")]
    actor_kind: String,
    /// The identifier of the user who did it; null when that is nobody known.
    #[schema(required = true, example = "65b8f0a2c3d4e5f601234567")]
    actor: Option<String>,
    /// `user` or `task`; null when there is no such user.
    #[schema(required = true, example = "task")]
    subject_kind: Option<String>,
    /// The identifier of the user or task that it was done to.
    #[schema(required = true, example = "665f1c2ab3d4e5f60718293a")]
    subject: Option<String>,
    /// By what the actor was let in: `token`, `password`, `reset-code`, `verification-code`,
    /// `task-secret` or `service-token`; null when by nothing.
    #[schema(required = true, example = "token")]
    proof: Option<String>,
    /// Where the request came from; null for work of our own, and after the deletion of the user whose
    /// address it was.
    #[schema(required = true, example = "203.0.113.7")]
    client_address: Option<String>,
    /// The request: the `X-Request-Id` of its answer, and of its lines in the logs.
    #[schema(example = "0b5c1d")]
    request_id: String,
    /// What else there is to say, such as `fields`: the names of the fields that changed.
    #[schema(required = true, value_type = Option<Object>)]
    detail: Option<Value>,
}

impl From<Row> for AuditEntry {
    fn from(row: Row) -> Self {
        Self {
            id: row.id,
            at: Timestamp(row.at),
            action: row.action,
            actor_kind: row.actor_kind,
            actor: row.actor_id.map(hex::encode),
            subject_kind: row.subject_kind,
            subject: row.subject_id.map(hex::encode),
            proof: row.proof,
            client_address: row.client_address,
            request_id: row.request_id,
            detail: row.detail,
        }
    }
}
