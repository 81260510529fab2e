use serde::Serialize;
use utoipa::ToSchema;

/// Where people see their tasks.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct DashboardResponse {
    /// The page's URL.
    #[schema(example = "http://localhost:8080/tasks")]
    pub(crate) dashboard_url: String,
}
