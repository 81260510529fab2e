use utoipa::IntoParams;

/// Describes the parameters of [`crate::Conditions`] in the OpenAPI document.
#[derive(Debug, IntoParams)]
#[into_params(parameter_in = Query)]
pub struct ConditionParameters {
    /// `<field>:<value>`; several by repeating the parameter or by commas, all must hold. A comma
    /// inside a value is written `\,`.
    pub filter: Option<String>,
    /// A text that is searched for, without regard to case and taken literally.
    pub pattern: Option<String>,
}

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

/// Describes the parameters of [`crate::ListQuery`] in the OpenAPI document.
#[derive(Debug, IntoParams)]
#[into_params(parameter_in = Query)]
pub struct ListParameters {
    /// Rows of a page at the most. When there are more, the header `Link` names the next page.
    #[param(minimum = 1, maximum = 1000, default = 100)]
    pub limit: Option<i64>,
    /// Rows before the page.
    #[param(minimum = 0, default = 0)]
    pub offset: Option<i64>,
    /// `<field>:<direction>`, where the direction is `1` or `-1`.
    pub sort: Option<String>,
    /// `<field>:<value>`; several by repeating the parameter or by commas, all must hold. A comma
    /// inside a value is written `\,`.
    pub filter: Option<String>,
    /// A text that is searched for, without regard to case and taken literally.
    pub pattern: Option<String>,
}
