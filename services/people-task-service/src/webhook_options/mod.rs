//! How the calls of a webhook differ from a POST of the task: more fields, headers, another method, another body, another
//! meaning of the answer.
//!
//! The options of a webhook are one document in its row. Bodies are made from the rows when a call is sent, and nothing is
//! stored of them: [why](../../../../docs/decisions/webhook-bodies-are-made-when-sent.md).

mod header_rules;
mod requests;
mod success;
pub(crate) mod template;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_with::skip_serializing_none;
use utoipa::ToSchema;
use values::Names as _;

pub(crate) use self::header_rules::{MAX_HEADER_BYTES, MAX_HEADERS};
pub(crate) use self::requests::{BodyTemplate, Include, NewHeaders};
pub(crate) use self::success::Success;
use crate::header_keys::SealedHeaders;
use crate::tasks::TaskField;

/// The form of the document. A worker that does not know the form of one sends nothing.
pub(crate) const VERSION: u32 = 1;

values::names! {
    /// The method of the calls of a webhook.
    #[derive(Serialize, Deserialize, ToSchema)]
    #[serde(rename_all = "UPPERCASE")]
    pub(crate) enum CallMethod {
        /// The usual one.
        Post = "POST",
        /// For engines that replace something.
        Put = "PUT",
        /// For engines that change something.
        Patch = "PATCH",
    }
}

/// How the calls of a webhook differ from others.
///
/// JSON of users stays text until it is needed: parsed, it can take a hundred times the memory.
#[skip_serializing_none]
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(crate) struct WebhookOptions {
    pub(crate) version: u32,
    /// Names of fields that the body has beside the usual ones.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) include: Vec<String>,
    pub(crate) headers: Option<SealedHeaders>,
    pub(crate) method: Option<CallMethod>,
    pub(crate) body: Option<Box<RawValue>>,
    pub(crate) success: Option<Success>,
}

impl WebhookOptions {
    /// The document of a row; `None` if it is of a later version.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let parsed: Result<Self, _> = serde_json::from_str(text);
        parsed.ok().filter(|options| options.version == VERSION)
    }

    /// The identifier of the key that sealed its headers.
    pub(crate) fn header_key(&self) -> Option<&str> {
        self.headers.as_ref().map(|headers| headers.key.as_str())
    }

    /// The document for a row.
    pub(crate) fn to_text(&self) -> String {
        // It has texts as keys and no other types that could fail.
        serde_json::to_string(self).unwrap_or_default()
    }

    /// The fields that the body has beside the usual ones. Those that this version does not know are left out.
    pub(crate) fn fields(&self) -> impl Iterator<Item = TaskField> {
        self.include
            .iter()
            .filter_map(|name| TaskField::from_name(name))
    }

    /// Whether a caller shapes the request itself, so that it could be meant for something else than a receiver of
    /// webhooks.
    pub(crate) fn shape_the_request(&self) -> bool {
        self.headers.is_some() || self.method.is_some() || self.body.is_some()
    }
}
