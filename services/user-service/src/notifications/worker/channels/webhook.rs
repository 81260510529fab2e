use std::sync::Arc;

use app_config::Networks;
use outbound::{AddressPolicy, BuildError, GuardedClient, Limits, SystemResolver};
use reqwest::header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use serde::Serialize;
use telemetry::RequestContext;
use url::Url;
use values::{Timestamp, UserId};

use super::SendError;
use crate::notifications::worker::notice::{Kind, Notice};

const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");
const TRACEPARENT: HeaderName = HeaderName::from_static("traceparent");

/// Posts messages to a url of the operator's; no redirect, no proxy, 10 s.
#[derive(Debug, Clone)]
pub(super) struct Webhook {
    client: GuardedClient,
    url: Url,
}

/// What is posted. The receiver gets the link to the person.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Body<'a> {
    code: &'a str,
    email: &'a str,
    user_id: UserId,
    created: Timestamp,
    link: &'a str,
    /// Only where it is no forgotten password, whose body is fixed.
    #[serde(skip_serializing_if = "Option::is_none")]
    kind: Option<&'static str>,
}

impl Webhook {
    pub(super) fn new(url: Url, allowed: Networks) -> Result<Self, BuildError> {
        let policy = AddressPolicy::new(allowed);
        let resolver = Arc::new(SystemResolver::default());
        let client = GuardedClient::new(policy, resolver, Limits::default())?;
        Ok(Self { client, url })
    }

    pub(super) async fn send(&self, notice: &Notice) -> Result<(), SendError> {
        let body = Body {
            code: notice.code.expose(),
            email: &notice.email,
            user_id: notice.user,
            created: notice.created.into(),
            link: notice.link.expose(),
            kind: (notice.kind != Kind::ForgotPassword).then(|| notice.kind.name()),
        };
        let failed = |error: &dyn std::fmt::Display| SendError::Webhook(format!("failed: {error}"));
        let body = serde_json::to_vec(&body).map_err(|error| failed(&error))?;
        let answer = self.client.post(&self.url, headers(), body).await;
        let status = answer.map_err(|error| failed(&error))?.status;
        if status.is_success() {
            Ok(())
        } else {
            Err(SendError::Webhook(format!("answered {}", status.as_u16())))
        }
    }
}

fn headers() -> HeaderMap {
    let context = RequestContext::current_or_fresh();
    let mut headers = HeaderMap::new();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    for (name, value) in [
        (REQUEST_ID, context.request_id),
        (TRACEPARENT, context.trace.to_string()),
    ] {
        if let Ok(value) = HeaderValue::from_str(&value) {
            headers.insert(name, value);
        }
    }
    headers
}
