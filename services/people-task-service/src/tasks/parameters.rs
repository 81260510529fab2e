//! The query parameters of tasks, as the OpenAPI document describes them. They are read one by one, so
//! these types exist for the document alone. A parameter that is empty counts as absent.

use utoipa::IntoParams;

/// Which tasks count.
#[derive(IntoParams)]
#[into_params(parameter_in = Query)]
#[expect(dead_code, reason = "it describes the parameters")]
pub(super) struct ConditionParameters {
    /// `<field>:<value>`; several by repeating the parameter or by commas, all must hold. A comma
    /// inside a value is written `\,`.
    #[param(
        pattern = r"^((status:(pending|approved|rejected)|public:(true|false)|(approver|requester|title):([^,\u0000]|\\,)*)?(,|$))*$",
        nullable = false
    )]
    filter: Option<String>,
    /// A text that is searched for in the title, without regard to case and taken literally.
    #[param(pattern = r"^[^\u0000]*$", nullable = false)]
    pattern: Option<String>,
}

/// Which tasks count, in which order, and which of them are shown.
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
        pattern = "^((created|decisionBy|title|status|mtime):(1|-1))?$",
        nullable = false
    )]
    sort: Option<String>,
}

/// What the answer shows besides the fields that it always has.
#[derive(IntoParams)]
#[into_params(parameter_in = Query)]
#[expect(dead_code, reason = "it describes the parameters")]
pub(super) struct IncludeParameter {
    /// Fields to add to the answer, separated by commas.
    #[param(
        pattern = "^(( *(public|created|mtime|decisionMade|isApprover) *)?(,|$))*$",
        example = "created,mtime",
        nullable = false
    )]
    include: Option<String>,
}

/// Whose tasks.
#[derive(IntoParams)]
#[into_params(parameter_in = Query)]
#[expect(dead_code, reason = "it describes the parameters")]
pub(super) struct RoleParameter {
    /// Only the user's tasks of one role: `creator`, `approver` or `requester`. `any`, for
    /// administrators: all tasks.
    #[param(pattern = "^(creator|approver|requester|any)?$", nullable = false)]
    role: Option<String>,
}

/// What the answer does not show.
#[derive(IntoParams)]
#[into_params(parameter_in = Query)]
#[expect(dead_code, reason = "it describes the parameters")]
pub(super) struct ProjectionParameter {
    /// Fields to leave out, separated by commas, each with a minus before it.
    #[param(
        pattern = "^(( *-(id|approver|requester|title|description|decisionBy|status|public|created|mtime|decisionMade|isApprover) *)?(,|$))*$",
        example = "-description,-title",
        nullable = false
    )]
    projection: Option<String>,
}
