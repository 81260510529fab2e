use http_kit::{Fields, Problem};
use utoipa::ToSchema;
use values::Secret;

/// The body of a confirmation of an e-mail address.
#[derive(Debug, ToSchema)]
pub(super) struct VerifyEmailRequest {
    /// The code that was sent.
    #[schema(value_type = String)]
    pub(super) code: Secret,
}

impl VerifyEmailRequest {
    pub(super) fn parse(mut fields: Fields) -> Result<Self, Problem> {
        let code = fields.required("code");
        fields.finish_with(code).map(|code| Self { code })
    }
}
