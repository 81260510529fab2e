use http_kit::{OptionalJsonBody, Problem};
use utoipa::ToSchema;
use values::Secret;

/// The secret of the task's approver, for a decision without a token.
#[derive(Debug, ToSchema)]
pub(crate) struct DecisionRequest {
    /// The approver's secret. It may also be sent as `?secret=` or in the header `X-Task-Secret`.
    #[schema(value_type = Option<String>)]
    pub(crate) secret: Option<Secret>,
}

impl DecisionRequest {
    /// Parses the body of a request. An empty secret counts as absent.
    ///
    /// # Errors
    /// `400` with every invalid field.
    pub(crate) fn parse(OptionalJsonBody(mut fields): OptionalJsonBody) -> Result<Self, Problem> {
        let secret: Option<Secret> = fields.optional("secret");
        fields.finish()?;
        let secret = secret.filter(|secret| !secret.expose().is_empty());
        Ok(Self { secret })
    }
}
