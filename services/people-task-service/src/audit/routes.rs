use actix_web::web::Data;
use actix_web::{HttpRequest, HttpResponse, get};
use audit_log::{AuditEntry, AuditQuery};
use auth::{AdminCaller, AdminProblems};
use database::DatabaseProblems;
use http_kit::{Problem, Query, QueryProblems};

use crate::context::Context;

/// The audit log of tasks: who did what to which task, newest first. For administrators.
///
/// Actions: `task-created`, `task-edited`, `task-approved`, `task-rejected`, `task-cancelled`, `webhook-registered`,
/// `webhook-removed`, `webhook-tested`, `delivery-redelivered`, `delivery-cancelled`, `deliveries-paused`, `deliveries-resumed` and
/// `user-erased`. A decision's `proof` says whether a token or the approver's secret made it. A deleted user is shown by a
/// pseudonym. The filters `after` (inclusive) and `before` (exclusive) take a time in RFC 3339 format.
#[utoipa::path(
    operation_id = "listTaskAudit",
    params(AuditQuery),
    responses(
        (status = 200, description = "One page of rows.", body = [AuditEntry],
            headers(("Link" = String, description = "`<…>; rel=\"next\"` if there is a next page."))),
        QueryProblems, AdminProblems, DatabaseProblems,
    ),
)]
#[get("/people-task/audit")]
pub(crate) async fn list_audit(
    admin: AdminCaller,
    query: Query,
    request: HttpRequest,
    context: Data<Context>,
) -> Result<HttpResponse, Problem> {
    audit_log::list(&context.lists, admin.id(), &query, &request).await
}
