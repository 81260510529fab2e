use actix_web::{HttpRequest, HttpResponse};
use database::{Connection, Database, database_problem};
use http_kit::{Problem, Query};
use listing::{Lists, PageLimits};
use serde::Serialize;
use serde_json::Value;
use utoipa::ToSchema;
use values::{Timestamp, UserId};

use crate::query::AuditQuery;
use crate::store::{self, Row};

/// A change of a user or a task. It holds identifiers and the names of changed fields, never their values.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct AuditEntry {
    /// The number of the entry.
    #[schema(example = 4711)]
    id: i64,
    /// When the change was made.
    #[schema(value_type = String, format = DateTime)]
    at: Timestamp,
    /// The kind of change.
    #[schema(example = "task-approved")]
    action: String,
    /// `user`, `admin` (a user with a token that has that scope), `service` (a process of the system),
    /// `approver-secret` or `requester-secret` (a caller with that secret of the task), or `anonymous`.
    #[schema(example = "user")]
    actor_kind: String,
    /// The identifier of the user who made the change; null if it was not a known user.
    #[schema(required = true, example = "65b8f0a2c3d4e5f601234567")]
    actor: Option<String>,
    /// `user` or `task`; null if the user does not exist.
    #[schema(required = true, example = "task")]
    subject_kind: Option<String>,
    /// The identifier of the user or task that was changed.
    #[schema(required = true, example = "665f1c2ab3d4e5f60718293a")]
    subject: Option<String>,
    /// How the actor was authenticated: `token`, `password`, `reset-code`, `verification-code`,
    /// `task-secret` or `service-token`; null for an unauthenticated caller.
    #[schema(required = true, example = "token")]
    proof: Option<String>,
    /// The client's address; null for work inside the system, and once the user whose address it was is
    /// deleted.
    #[schema(required = true, example = "203.0.113.7")]
    client_address: Option<String>,
    /// The `X-Request-Id` of the response, which is also in the log lines of the request.
    #[schema(example = "0b5c1d")]
    request_id: String,
    /// Further details, such as `fields`, the names of the fields that changed, of a decision `version` and
    /// `contentSha256`, the hash of what was decided on, and `key`, the API key that acted for the user.
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

/// Handles a request for the list: returns one page, and the next one in `Link`.
///
/// # Errors
/// `400 validation-failed` with one entry for each invalid parameter, and the problems of [`Lists::page`] and of the
/// database.
pub async fn list(
    lists: &Lists,
    caller: UserId,
    query: &Query,
    request: &HttpRequest,
) -> Result<HttpResponse, Problem> {
    let AuditQuery(query) = AuditQuery::parse(query)?;
    let load = move |database: Database, bytes| {
        let query = query.clone();
        let load = move |connection: &mut Connection| {
            let paging = query.paging;
            store::load_page(connection, &query, PageLimits { paging, bytes })
        };
        async move { database.run(load).await.map_err(database_problem) }
    };
    let page = lists.page(Some(caller), load, AuditEntry::from).await?;
    Ok(page.respond(request.path(), request.query_string()))
}
