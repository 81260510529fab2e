//! Responses about passwords. None contains a password or a code.

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::{Map, Value};
use telemetry::RequestContext;
use utoipa::ToSchema;
use values::{EmailAddress, Names as _, NotificationId, Timestamp};

use crate::notifications::store::QueuedNotification;

/// The flow and the sending component, as Appmixer names them.
const FORGOT_PASSWORD: &str = "forgot-password";

/// A new token that replaces the revoked ones.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct ChangePasswordResponse {
    #[schema(example = "eyJhbGciOiJFZERTQSIsImtpZCI6Ii4uLiJ9.e30.c2ln")]
    pub(super) token: String,
}

/// The notification that was queued for one channel.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct ForgotPasswordResponse {
    #[schema(inline)]
    message_id: NotificationId,
    #[schema(example = "forgot-password")]
    flow_id: &'static str,
    /// The channel: `webhook`, `mail` or `log`.
    #[schema(example = "mail")]
    component_id: &'static str,
    messages: Messages,
    #[schema(inline)]
    created: Timestamp,
    /// An error object as a JSON string. Always empty.
    #[schema(example = "{}")]
    err: &'static str,
}

#[derive(Debug, Serialize, ToSchema)]
#[schema(as = ForgotPasswordMessages)]
struct Messages {
    #[serde(rename = "in")]
    messages_in: Vec<ForgotPasswordMessage>,
}

#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct ForgotPasswordMessage {
    properties: Properties,
    content: Content,
    /// The output of each port of each component.
    scope: BTreeMap<&'static str, BTreeMap<&'static str, Content>>,
    original_content: Content,
}

/// The address of the request and its time. The same for known and unknown addresses.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[schema(as = ForgotPasswordContent)]
struct Content {
    #[schema(example = "ada@example.com")]
    email: String,
    #[schema(inline)]
    created: Timestamp,
}

#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = ForgotPasswordProperties)]
struct Properties {
    /// The request id.
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
    #[schema(inline)]
    message_id: NotificationId,
    /// The time of the request in milliseconds since 1970.
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

impl ForgotPasswordResponse {
    /// `email` is the address as the caller wrote it.
    pub(super) fn new(
        queued: &QueuedNotification,
        email: &EmailAddress,
        context: &RequestContext,
    ) -> Self {
        let created = Timestamp::from(queued.created);
        let content = Content {
            email: email.as_str().to_owned(),
            created,
        };
        let output = BTreeMap::from([("out", content.clone())]);
        let message = ForgotPasswordMessage {
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
    fn new(queued: &QueuedNotification, context: &RequestContext) -> Self {
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
