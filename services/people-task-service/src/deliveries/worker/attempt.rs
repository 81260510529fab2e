use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::{Duration, Instant};

use chrono::{DateTime, Utc};
use futures_util::FutureExt as _;
use outbound::{GuardedClient, SendError, TargetUrl, TruncatedResponse, Unresolved, for_owner};
use reqwest::StatusCode;
use reqwest::header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use telemetry::{RequestContext, SpanKind};
use tracing::Span;
use values::{DeliveryId, FromText as _, Timestamp, UserId, WebhookId};

use crate::deliveries::responses::Attempt;
use crate::deliveries::worker::due_store::DueRow;
use crate::deliveries::worker::lane::Health;
use crate::deliveries::worker::schedule::{RetryDecision, RetrySchedule, jitter};
use crate::deliveries::{LaneParts, group_of};
use crate::tasks::responses::TaskResponse;
use crate::webhook_signature::{WebhookSecret, WebhookSigner};

/// The resources that every attempt needs.
#[derive(Debug)]
pub(super) struct Sender {
    pub(super) client: GuardedClient,
    pub(super) signer: WebhookSigner,
    pub(super) schedule: RetrySchedule,
}

/// A finished attempt that is not recorded yet.
#[derive(Debug)]
pub(super) struct AttemptResult {
    pub(super) lease: Lease,
    pub(super) attempt: Attempt,
    pub(super) duration: Duration,
    pub(super) decision: RetryDecision,
    pub(super) health: Health,
}

/// What recording the end of a delivery needs.
#[derive(Debug, Clone)]
pub(super) struct Lease {
    pub(super) delivery: DeliveryId,
    pub(super) webhook: WebhookId,
    /// Who registered the webhook.
    pub(super) registrant: UserId,
    /// The version of the row that was loaded.
    pub(super) version: i32,
    pub(super) lane: Arc<str>,
    pub(super) created: DateTime<Utc>,
    pub(super) context: RequestContext,
}

impl Lease {
    /// The lease of a loaded delivery.
    pub(super) fn of(row: &DueRow) -> Self {
        let (request, trace) = (&row.request_id, &row.traceparent);
        Self {
            delivery: row.delivery_id,
            webhook: row.webhook_id,
            registrant: row.registrant.registered_by,
            version: row.lease,
            lane: row.lane.as_str().into(),
            created: row.delivery_created,
            context: RequestContext::continued(Some(request), Some(trace)),
        }
    }

    fn age(&self, now: DateTime<Utc>) -> Duration {
        (now - self.created).to_std().unwrap_or_default()
    }
}

/// The result for a delivery that is not sent, because the user who registered the webhook has no right to the task.
fn suspended(row: &DueRow, lease: Lease) -> AttemptResult {
    let at = Utc::now();
    AttemptResult {
        duration: Duration::ZERO,
        decision: RetrySchedule::suspend(lease.age(at), row.suspended, jitter()),
        health: Health::Unknown,
        attempt: describe(
            at,
            Duration::ZERO,
            Err(SendError::Broken("suspended".to_owned())),
        ),
        lease,
    }
}

impl Sender {
    /// Sends a delivery once. A panic counts as a failed attempt, so that a delivery that causes panics ends
    /// as others do.
    pub(super) async fn attempt(&self, row: DueRow) -> AttemptResult {
        let lease = Lease::of(&row);
        if !row.registrant.may_be_told(&row.task) {
            return suspended(&row, lease);
        }
        let earlier = usize::try_from(row.attempts).unwrap_or_default();
        let (at, started) = (Utc::now(), Instant::now());
        let sending = Box::pin(self.send(row));
        let sending = AssertUnwindSafe(sending).catch_unwind();
        let context = lease.context.clone();
        let response = context
            .scope(SpanKind::Client, "webhook.attempt", sending)
            .await;
        let response = response.unwrap_or_else(|_| {
            tracing::error!(delivery.id = %lease.delivery, "an attempt panicked");
            Err(SendError::Broken("internal error".to_owned()))
        });
        let duration = started.elapsed();
        let age = lease.age(at);
        AttemptResult {
            lease,
            duration,
            decision: self.schedule.decide(earlier, age, &response, jitter()),
            health: health(&response),
            attempt: describe(at, duration, response),
        }
    }

    async fn send(&self, row: DueRow) -> Result<TruncatedResponse, SendError> {
        let broken = |what: &str| SendError::Broken(what.to_owned());
        let url = TargetUrl::parse(&row.url).map_err(|_| broken("the URL is invalid"))?;
        let secret = row.secret.as_deref().map(WebhookSecret::from_text);
        let secret = secret.and_then(Result::ok);
        let (id, timestamp) = (row.delivery_id, Utc::now().timestamp());
        let body = TaskResponse::for_webhook(row.task, row.with_task_id, row.due_at);
        let body =
            serde_json::to_vec(&body).map_err(|_| broken("the task cannot be serialized"))?;
        let signature = self.signer.sign(id, timestamp, &body, secret.as_ref());
        let context = RequestContext::current_or_fresh();
        let headers = headers([
            (CONTENT_TYPE, "application/json".to_owned()),
            (HeaderName::from_static("webhook-id"), id.to_string()),
            (
                HeaderName::from_static("webhook-timestamp"),
                timestamp.to_string(),
            ),
            (HeaderName::from_static("webhook-signature"), signature),
            (HeaderName::from_static("x-request-id"), context.request_id),
            (
                HeaderName::from_static("traceparent"),
                context.trace.to_string(),
            ),
        ]);
        let group = group_of(LaneParts::of(&row.lane).owner);
        let response = for_owner(group, self.client.post(&url, headers, body)).await;
        let span = Span::current();
        telemetry::set_attribute(&span, "server.address", row.host);
        match &response {
            Ok(response) => {
                let status = i64::from(response.status.as_u16());
                telemetry::set_attribute(&span, "http.response.status_code", status);
            }
            Err(_) => telemetry::set_failed(&span, "no response"),
        }
        response
    }
}

fn headers(pairs: impl IntoIterator<Item = (HeaderName, String)>) -> HeaderMap {
    let valid = |(name, text)| Some((name, HeaderValue::try_from(text).ok()?));
    pairs.into_iter().filter_map(valid).collect()
}

/// What a response says about the receiver. One that refuses a request responds.
fn health(response: &Result<TruncatedResponse, SendError>) -> Health {
    match response {
        Ok(response) if response.status.is_server_error() => Health::Fails,
        Ok(response) if response.status == StatusCode::TOO_MANY_REQUESTS => Health::Fails,
        Ok(_) => Health::Responds,
        Err(SendError::Refused(_) | SendError::Unresolved(Unresolved::NotAsked)) => Health::Unknown,
        Err(_) => Health::Unreachable,
    }
}

/// The attempt as the API shows it.
fn describe(
    at: DateTime<Utc>,
    duration: Duration,
    response: Result<TruncatedResponse, SendError>,
) -> Attempt {
    let (status_code, error, response) = match response {
        Ok(response) => {
            let redirect = response.status.is_redirection();
            let error = redirect.then(|| "redirects are not followed".to_owned());
            let text = without_nul(&String::from_utf8_lossy(&response.beginning));
            let body = (!text.is_empty()).then_some(text);
            (Some(response.status.as_u16()), error, body)
        }
        Err(error) => (None, Some(without_nul(&error.to_string())), None),
    };
    Attempt {
        at: Timestamp(at),
        duration_ms: i32::try_from(duration.as_millis()).unwrap_or(i32::MAX),
        status_code,
        error,
        response,
    }
}

/// Postgres cannot store NUL characters.
fn without_nul(text: &str) -> String {
    text.replace('\0', "")
}
