use actix_web::get;
use actix_web::web::{Data, Json};
use auth::{Caller, TokenProblems};
use serde::Serialize;
use utoipa::ToSchema;

use crate::context::Context;

/// Where people see their tasks.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct DashboardResponse {
    /// The page's URL.
    #[schema(example = "http://localhost:8080/tasks")]
    dashboard_url: String,
}

/// The page on which people see their tasks.
#[utoipa::path(
    tag = "people-task",
    operation_id = "dashboardUrl",
    security(("bearer" = [])),
    responses((status = 200, description = "The page.", body = DashboardResponse), TokenProblems),
)]
#[get("/plugins/appmixer/utils/tasks/dashboard-url")]
pub(crate) async fn dashboard_url(
    _caller: Caller,
    context: Data<Context>,
) -> Json<DashboardResponse> {
    Json(DashboardResponse {
        dashboard_url: context.dashboard_url.to_string(),
    })
}
