use http_kit::{OptionalJsonBody, Problem};
use utoipa::ToSchema;
use utoipa::openapi::schema::ObjectBuilder;
use values::{Secret, bounded_text, is_visible};

use crate::tasks::TaskVersion;

const MAX_COMMENT: usize = 2_000;

/// A comment, and the secret of the task's approver for a decision without a token.
#[derive(Debug, ToSchema)]
pub(crate) struct DecisionRequest {
    /// The approver's secret. It may also be sent as `?secret=` or in the header `X-Task-Secret`.
    #[schema(value_type = Option<String>)]
    pub(crate) secret: Option<Secret>,
    /// What to say about the decision: at most 2,000 characters, without the whitespace around them. A rejection needs
    /// one if the task has `commentRequired`.
    #[schema(inline, example = "Too expensive.")]
    pub(crate) comment: Option<DecisionComment>,
    /// The version of the task that is decided on, like `If-Match`. Another one is `409 task-changed`.
    #[schema(inline, example = 1)]
    pub(crate) version: Option<TaskVersion>,
}

impl DecisionRequest {
    /// Parses the body of a request, whose comment has this name. An empty secret counts as absent, and so does a comment
    /// without a character that can be seen.
    pub(crate) fn parse(
        OptionalJsonBody(mut fields): OptionalJsonBody,
        comment: &str,
    ) -> Result<Self, Problem> {
        let secret: Option<Secret> = fields.optional("secret");
        let comment: Option<DecisionComment> = fields.optional(comment);
        let version = fields.optional("version");
        fields.finish()?;
        Ok(Self {
            secret: secret.filter(|secret| !secret.expose().is_empty()),
            comment: comment.filter(|comment| is_visible(comment.as_str())),
            version,
        })
    }
}

/// Why a task is withdrawn, and the secret of its requester if it is withdrawn without a token.
#[derive(Debug, ToSchema)]
#[expect(dead_code, reason = "it only documents the body")]
pub(crate) struct CancelRequest {
    /// The requester's secret. It may also be sent as `?secret=` or in the header `X-Task-Secret`.
    #[schema(value_type = Option<String>)]
    pub(crate) secret: Option<Secret>,
    /// Why: at most 2,000 characters, without the whitespace around them. `include=comment` shows it.
    #[schema(inline, example = "No longer needed.")]
    pub(crate) reason: Option<DecisionComment>,
    /// The version of the task that is withdrawn, like `If-Match`. Another one is `409 task-changed`.
    #[schema(inline, example = 1)]
    pub(crate) version: Option<TaskVersion>,
}

values::texts! {
    /// What someone writes about a decision: at most 2,000 characters, without the whitespace around them.
    pub(crate) struct DecisionComment = |text| bounded_text(text.trim(), 0, MAX_COMMENT);
}

http_kit::text_fields! {
    DecisionComment = ObjectBuilder::new().max_length(Some(MAX_COMMENT));
}
