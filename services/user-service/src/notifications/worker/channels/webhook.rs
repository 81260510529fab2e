use std::sync::Arc;

use outbound::{
    AddressPolicy, BuildError, GuardedClient, Limits, SystemResolver, TargetUrl, TruncatedResponse,
};
use reqwest::header::{HeaderMap, HeaderName, HeaderValue};
use serde::Serialize;
use telemetry::{CallOutcome, RequestContext};
use values::{Names as _, Timestamp, UserId};

use crate::notifications::Kind;
use crate::notifications::worker::error::SendError;
use crate::notifications::worker::notification::{Code, Notification};

/// Posts notifications to the operator's URL, without redirects or a proxy.
#[derive(Debug, Clone)]
pub(super) struct Webhook {
    client: GuardedClient,
    url: TargetUrl,
}

/// The body of the request. The receiver must pass the link on to the user.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Body<'a> {
    code: &'a str,
    email: &'a str,
    user_id: UserId,
    created: Timestamp,
    link: &'a str,
    /// Absent for a forgotten password, whose body is fixed.
    #[serde(skip_serializing_if = "Option::is_none")]
    kind: Option<&'static str>,
}

impl Webhook {
    pub(super) fn new(url: TargetUrl, policy: AddressPolicy) -> Result<Self, BuildError> {
        let resolver = Arc::new(SystemResolver::from_system()?);
        let client = GuardedClient::new(policy, resolver, Limits::default())?;
        Ok(Self { client, url })
    }

    pub(super) async fn send(
        &self,
        notification: &Notification,
        code: &Code,
    ) -> Result<(), SendError> {
        let body = Body {
            code: code.code.expose(),
            email: &notification.email,
            user_id: notification.user,
            created: notification.created.into(),
            link: code.link.expose(),
            kind: (code.kind != Kind::ForgotPassword).then(|| code.kind.name()),
        };
        let failed = |error: &dyn std::fmt::Display| SendError::Webhook(format!("failed: {error}"));
        let body = serde_json::to_vec(&body).map_err(|error| failed(&error))?;
        let sent = async { self.client.post(&self.url, headers(), body).await };
        let outcome =
            |result: &Result<TruncatedResponse, _>| CallOutcome::of(result, |r| r.status.as_u16());
        let response = telemetry::outgoing("notification-webhook", sent, outcome).await;
        let status = response.map_err(|error| failed(&error))?.status;
        match status.as_u16() {
            200..300 => Ok(()),
            status => Err(SendError::Webhook(format!("responded with {status}"))),
        }
    }
}

fn headers() -> HeaderMap {
    let context = RequestContext::current_or_fresh();
    let headers = [
        ("content-type", "application/json".to_owned()),
        ("x-request-id", context.request_id),
        ("traceparent", context.trace.to_string()),
    ];
    let headers = headers.into_iter().filter_map(|(name, value)| {
        let value = HeaderValue::try_from(value).ok()?;
        Some((HeaderName::from_static(name), value))
    });
    headers.collect()
}
