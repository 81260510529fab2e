//! The query parameters of lists of users, as the OpenAPI document describes them. They are read one by
//! one, so these types exist for the document alone. A parameter that is empty counts as absent.

use utoipa::IntoParams;

/// Which users count.
#[derive(IntoParams)]
#[into_params(parameter_in = Query)]
#[expect(dead_code, reason = "it describes the parameters")]
pub(super) struct ConditionParameters {
    /// `<field>:<value>`; several by repeating the parameter or by commas, all must hold. A comma
    /// inside a value is written `\,`.
    #[param(
        pattern = r"^((isActive:(true|false)|(username|email|scope|plan|vendor):([^,\u0000]|\\,)*)?(,|$))*$",
        nullable = false
    )]
    filter: Option<String>,
    /// A text that is searched for in the username, without regard to case and taken literally.
    #[param(pattern = r"^[^\u0000]*$", nullable = false)]
    pattern: Option<String>,
}

/// In which order users are listed, and which of them are shown.
#[derive(IntoParams)]
#[into_params(parameter_in = Query)]
#[expect(dead_code, reason = "it describes the parameters")]
pub(super) struct ListParameters {
    /// Rows of a page at the most. When there are more, the header `Link` names the next page.
    #[param(minimum = 1, maximum = 1000, default = 100, nullable = false)]
    limit: Option<i64>,
    /// Rows before the page.
    #[param(minimum = 0, default = 0, nullable = false)]
    offset: Option<i64>,
    /// `<field>:<direction>`, where the direction is `1` or `-1`.
    #[param(
        pattern = "^((created|mtime|username|email|plan|isActive|lastSignIn):(1|-1))?$",
        nullable = false
    )]
    sort: Option<String>,
}
