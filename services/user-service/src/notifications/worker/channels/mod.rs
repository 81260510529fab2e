//! How notifications are sent.

mod mail;

use std::fmt::Display;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use outbound::{AddressPolicy, Call, GuardedClient, SystemResolver, TargetUrl, TruncatedResponse};
use reqwest::Method;
use reqwest::header::{HeaderMap, HeaderName, HeaderValue};
use serde::Serialize;
use telemetry::{CallOutcome, RequestContext};
use values::{Names as _, Timestamp, UserId};

use super::error::SendError;
use super::notification::{Code, Content, Notification};
use crate::notifications::{Channel, Kind};
use crate::settings::NotificationWorkerSettings;

pub(super) use mail::Mail;

/// How long the operator's URL may take to respond.
const TIMEOUT: Duration = Duration::from_secs(10);
const IDLE_CONNECTIONS: usize = 16;

#[derive(Clone)]
pub(super) struct Channels {
    webhook: Option<Webhook>,
    pub(super) mail: Option<Mail>,
    log: bool,
}

impl Channels {
    pub(super) fn new(settings: &NotificationWorkerSettings) -> anyhow::Result<Self> {
        let channels = &settings.channels;
        let webhook = channels.webhook.as_ref();
        let webhook = webhook.map(|url| Webhook::new(url.clone(), settings.addresses.clone()));
        let mail = channels.mail.as_ref();
        let mail = mail.map(|mail| Mail::new(mail, settings.language));
        Ok(Self {
            webhook: webhook.transpose().context("no HTTP client")?,
            mail: mail.transpose()?,
            log: channels.log,
        })
    }

    pub(super) async fn send(&self, notification: &Notification) -> Result<(), SendError> {
        match (notification.channel, &notification.content) {
            (Channel::Mail, _) => {
                let mail = self.mail.as_ref().ok_or(SendError::NotConfigured)?;
                mail.send(notification).await
            }
            (Channel::Webhook, Content::Code(code)) => {
                let webhook = self.webhook.as_ref().ok_or(SendError::NotConfigured)?;
                webhook.send(notification, code).await
            }
            (Channel::Log, Content::Code(code)) if self.log => {
                // This is the only place where a code is logged, and for development only.
                tracing::info!(
                    user.id = %notification.user,
                    kind = code.kind.name(),
                    link = code.link.expose(),
                    "link with a code (FORGOT_PASSWORD_LOG is on)"
                );
                Ok(())
            }
            _ => Err(SendError::NotConfigured),
        }
    }
}

/// Posts notifications to the operator's URL, without redirects or a proxy.
#[derive(Debug, Clone)]
struct Webhook {
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
    fn new(url: TargetUrl, policy: AddressPolicy) -> anyhow::Result<Self> {
        let resolver = Arc::new(SystemResolver::from_system()?);
        let client = GuardedClient::new(policy, resolver, TIMEOUT, IDLE_CONNECTIONS)?;
        Ok(Self { client, url })
    }

    async fn send(&self, notification: &Notification, code: &Code) -> Result<(), SendError> {
        let body = Body {
            code: code.code.expose(),
            email: &notification.email,
            user_id: notification.user,
            created: notification.created.into(),
            link: code.link.expose(),
            kind: (code.kind != Kind::ForgotPassword).then(|| code.kind.name()),
        };
        let failed = |error: &dyn Display| SendError::Webhook(format!("failed: {error}"));
        let body = serde_json::to_vec(&body).map_err(|error| failed(&error))?;
        let call = Call {
            method: Method::POST,
            headers: headers(),
            body: body.into(),
            body_bytes: 1024,
        };
        let sent = async { self.client.send(&self.url, call).await };
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
