use actix_web::web::Data;
use actix_web::{HttpRequest, HttpResponse, get};
use audit_log::{AuditEntry, AuditQuery};
use auth::{AdminCaller, AdminProblems};
use database::DatabaseProblems;
use http_kit::{Problem, Query, QueryProblems};

use crate::context::Context;

/// Get the audit log of users
///
/// Who did what to which user, newest first. Actions: `first-admin-made`, `user-created`, `user-updated`, `tokens-revoked`,
/// `verification-requested`, `email-verified`, `signed-in`, `sign-in-refused`, `session-started`, `session-ended`,
/// `session-replayed`, `key-created`, `key-ended`, `key-confirmed`, `password-changed`, `password-change-refused`,
/// `password-reset-requested`, `password-reset`, `user-deletion-requested`, `user-deletion-cancelled`, `user-deletion-failed` and
/// `user-deleted`. A deleted user is shown by a pseudonym. The filters `after` (inclusive) and `before` (exclusive) take a time
/// in RFC 3339 format.
#[utoipa::path(
    params(AuditQuery),
    responses(
        (status = 200, description = "The entries of the page.", body = Vec<AuditEntry>,
            headers(("Link" = String, description = "`<…>; rel=\"next\"` if there is a next page."))),
        AdminProblems, QueryProblems, DatabaseProblems
    )
)]
#[get("/audit")]
pub(crate) async fn list_audit(
    admin: AdminCaller,
    context: Data<Context>,
    query: Query,
    request: HttpRequest,
) -> Result<HttpResponse, Problem> {
    audit_log::list(&context.lists, admin.id(), &query, &request).await
}
