//! What callers see of passwords: never a password, never a code.

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::{Map, Value};
use telemetry::RequestContext;
use utoipa::ToSchema;
use values::{EmailAddress, NotificationId, Secret, Timestamp};

use crate::notifications::store::Queued;

/// The flow, and the component that sends, in the document's words.
const FORGOT_PASSWORD: &str = "forgot-password";

/// A new token in place of those that were revoked.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct NewToken {
    #[schema(example = "eyJhbGciOiJFZERTQSIsImtpZCI6Ii4uLiJ9.e30.c2ln")]
    token: String,
}

impl NewToken {
    pub(super) fn new(token: &Secret) -> Self {
        Self {
            token: token.expose().to_owned(),
        }
    }
}

/// What was handed to one channel.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = ForgotPasswordEntry)]
pub(super) struct Entry {
    #[schema(value_type = String, example = "65b8f0a2c3d4e5f601234567")]
    message_id: NotificationId,
    #[schema(example = "forgot-password")]
    flow_id: &'static str,
    /// The channel: `webhook`, `mail` or `log`.
    #[schema(example = "mail")]
    component_id: &'static str,
    messages: Messages,
    #[schema(value_type = String, format = DateTime)]
    created: Timestamp,
    /// A stringified error object, which is empty.
    #[schema(example = "{}")]
    err: &'static str,
}

#[derive(Debug, Serialize, ToSchema)]
#[schema(as = ForgotPasswordMessages)]
struct Messages {
    #[serde(rename = "in")]
    messages_in: Vec<EntryMessage>,
}

#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = ForgotPasswordMessage)]
struct EntryMessage {
    properties: Properties,
    content: Content,
    /// By component, then by output port: what that port put out.
    scope: BTreeMap<&'static str, BTreeMap<&'static str, Content>>,
    original_content: Content,
}

/// Whom a code was asked for, and when. The same for known and unknown addresses.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[schema(as = ForgotPasswordContent)]
struct Content {
    #[schema(example = "ada@example.com")]
    email: String,
    #[schema(value_type = String, format = DateTime)]
    created: Timestamp,
}

#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = ForgotPasswordProperties)]
struct Properties {
    /// The request's id.
    correlation_id: String,
    grid_instance_id: Option<String>,
    content_type: &'static str,
    content_encoding: &'static str,
    sender: Sender,
    destination: Destination,
    correlation_in_port: Option<String>,
    #[schema(value_type = Object)]
    component_headers: Map<String, Value>,
    flow_id: &'static str,
    #[schema(value_type = String)]
    message_id: NotificationId,
    /// The moment of the request, in milliseconds since 1970.
    flow_run_id: i64,
}

#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = ForgotPasswordSender)]
struct Sender {
    component_id: &'static str,
    #[serde(rename = "type")]
    kind: &'static str,
    output_port: &'static str,
}

#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = ForgotPasswordDestination)]
struct Destination {
    component_id: &'static str,
    input_port: &'static str,
}

impl Entry {
    /// What a caller sees of a message; `email` as the caller gave it.
    pub(super) fn new(queued: &Queued, email: &EmailAddress, context: &RequestContext) -> Self {
        let created = Timestamp::from(queued.created);
        let content = Content {
            email: email.as_str().to_owned(),
            created,
        };
        let output = BTreeMap::from([("out", content.clone())]);
        let message = EntryMessage {
            properties: Properties::new(queued, context),
            scope: BTreeMap::from([(FORGOT_PASSWORD, output)]),
            original_content: content.clone(),
            content,
        };
        Self {
            message_id: queued.id,
            flow_id: FORGOT_PASSWORD,
            component_id: queued.channel.name(),
            messages: Messages {
                messages_in: vec![message],
            },
            created,
            err: "{}",
        }
    }
}

impl Properties {
    fn new(queued: &Queued, context: &RequestContext) -> Self {
        Self {
            correlation_id: context.request_id.clone(),
            grid_instance_id: None,
            content_type: "application/json",
            content_encoding: "utf8",
            sender: Sender {
                component_id: FORGOT_PASSWORD,
                kind: "countersign.user.ForgotPassword",
                output_port: "out",
            },
            destination: Destination {
                component_id: queued.channel.name(),
                input_port: "in",
            },
            correlation_in_port: None,
            component_headers: Map::new(),
            flow_id: FORGOT_PASSWORD,
            message_id: queued.id,
            flow_run_id: queued.created.timestamp_millis(),
        }
    }
}
