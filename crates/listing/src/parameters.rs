use utoipa::IntoParams;

/// Describes `limit` and `offset` in the OpenAPI document.
#[derive(Debug, IntoParams)]
#[into_params(parameter_in = Query)]
pub struct PageParameters {
    /// Rows of a page at the most. When there are more, the header `Link` names the next page.
    #[param(minimum = 1, maximum = 1000, default = 100)]
    pub limit: Option<i64>,
    /// Rows before the page.
    #[param(minimum = 0, default = 0)]
    pub offset: Option<i64>,
}
