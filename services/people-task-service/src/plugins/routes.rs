use actix_web::get;
use actix_web::web::{Data, Json};
use auth::Caller;
use serde::Serialize;
use url::Url;
use utoipa::ToSchema;

use auth::TokenProblems;

/// Where people see their tasks.
#[derive(Debug)]
pub(crate) struct Dashboard(pub(crate) Url);

/// Where people see their tasks.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = Dashboard)]
pub(crate) struct DashboardAnswer {
    /// The page's url.
    #[schema(example = "http://localhost:8080/tasks")]
    dashboard_url: String,
}

/// The page on which people see their tasks.
#[utoipa::path(
    tag = "people-task",
    operation_id = "dashboardUrl",
    security(("bearer" = [])),
    responses((status = 200, description = "The page.", body = DashboardAnswer), TokenProblems),
)]
#[get("/plugins/appmixer/utils/tasks/dashboard-url")]
pub(crate) async fn dashboard_url(
    _caller: Caller,
    dashboard: Data<Dashboard>,
) -> Json<DashboardAnswer> {
    Json(DashboardAnswer {
        dashboard_url: dashboard.0.to_string(),
    })
}
