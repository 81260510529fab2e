use std::panic::AssertUnwindSafe;
use std::time::{Duration, Instant};

use chrono::{DateTime, Utc};
use futures_util::FutureExt as _;
use outbound::{GuardedClient, SendError, TruncatedResponse};
use reqwest::header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use telemetry::RequestContext;
use url::Url;
use values::{DeliveryId, FromText as _, WebhookId};

use crate::deliveries::worker::schedule::{RetryDecision, RetrySchedule, jitter};
use crate::deliveries::worker::store::ClaimedDelivery;
use crate::signing::{WebhookSecret, WebhookSigner};
use crate::tasks::responses::TaskResponse;

/// The resources that every attempt needs.
#[derive(Debug)]
pub(super) struct Sender {
    pub(super) client: GuardedClient,
    pub(super) signer: WebhookSigner,
    pub(super) schedule: RetrySchedule,
}

/// A claimed delivery, with the end of its lease by the clock of this process.
pub(super) struct LeasedDelivery {
    pub(super) claimed: ClaimedDelivery,
    pub(super) until: Instant,
}

/// A finished attempt that is not recorded yet.
#[derive(Debug)]
pub(super) struct AttemptResult {
    pub(super) lease: Lease,
    pub(super) at: DateTime<Utc>,
    pub(super) duration: Duration,
    pub(super) decision: RetryDecision,
    pub(super) status_code: Option<u16>,
    pub(super) error: Option<String>,
    pub(super) response: Option<String>,
}

/// The lease under which an attempt was made: what recording its result needs.
#[derive(Debug)]
pub(super) struct Lease {
    pub(super) delivery: DeliveryId,
    pub(super) webhook: WebhookId,
    /// Each claim of a delivery has another number.
    pub(super) number: i64,
    pub(super) host: String,
    pub(super) decided: DateTime<Utc>,
    pub(super) context: RequestContext,
    pub(super) until: Instant,
}

impl LeasedDelivery {
    fn lease(&self) -> Lease {
        let claimed = &self.claimed;
        Lease {
            delivery: claimed.delivery_id,
            webhook: claimed.webhook_id,
            number: claimed.lease,
            host: claimed.host.clone(),
            decided: claimed.decided,
            context: RequestContext::continued(
                Some(&claimed.request_id),
                Some(&claimed.traceparent),
            ),
            until: self.until,
        }
    }
}

impl Sender {
    /// Sends a delivery once. A panic counts as a failed attempt, so that a delivery that causes panics ends
    /// as others do.
    pub(super) async fn attempt(&self, delivery: LeasedDelivery) -> AttemptResult {
        let lease = delivery.lease();
        let context = lease.context.clone();
        let earlier = usize::try_from(delivery.claimed.attempts).unwrap_or_default();
        let (at, started) = (Utc::now(), Instant::now());
        let sending = Box::pin(self.send(delivery.claimed, &context));
        let sending = AssertUnwindSafe(sending).catch_unwind();
        let response = context.clone().scope("webhook.attempt", sending).await;
        let response = response.unwrap_or_else(|_| {
            tracing::error!(delivery.id = %lease.delivery, "an attempt panicked");
            Err(SendError::Broken("internal error".to_owned()))
        });
        let duration = started.elapsed();
        let age = (at - lease.decided).to_std().unwrap_or_default();
        let decision = self.schedule.decide(earlier, age, &response, jitter());
        let (status_code, error, response) = describe(response);
        AttemptResult {
            lease,
            at,
            duration,
            decision,
            status_code,
            error,
            response,
        }
    }

    async fn send(
        &self,
        claimed: ClaimedDelivery,
        context: &RequestContext,
    ) -> Result<TruncatedResponse, SendError> {
        let broken = |what: &str| SendError::Broken(what.to_owned());
        let url = Url::parse(&claimed.url).map_err(|_| broken("the URL is invalid"))?;
        let secret = claimed.secret.as_deref().map(WebhookSecret::from_text);
        let secret = secret.and_then(Result::ok);
        let (id, timestamp) = (claimed.delivery_id, Utc::now().timestamp());
        let body = TaskResponse::for_webhook(claimed.task, claimed.with_task_id);
        let body =
            serde_json::to_vec(&body).map_err(|_| broken("the task cannot be serialized"))?;
        let signature = self.signer.sign(id, timestamp, &body, secret.as_ref());
        let headers = headers([
            (CONTENT_TYPE, "application/json".to_owned()),
            (HeaderName::from_static("webhook-id"), id.to_string()),
            (
                HeaderName::from_static("webhook-timestamp"),
                timestamp.to_string(),
            ),
            (HeaderName::from_static("webhook-signature"), signature),
            (
                HeaderName::from_static("x-request-id"),
                context.request_id.clone(),
            ),
            (
                HeaderName::from_static("traceparent"),
                context.trace.to_string(),
            ),
        ]);
        self.client.post(&url, headers, body).await
    }
}

fn headers(pairs: impl IntoIterator<Item = (HeaderName, String)>) -> HeaderMap {
    let valid = |(name, text)| Some((name, HeaderValue::try_from(text).ok()?));
    pairs.into_iter().filter_map(valid).collect()
}

/// The columns of an attempt: status code, error, and the start of the response's body.
fn describe(
    response: Result<TruncatedResponse, SendError>,
) -> (Option<u16>, Option<String>, Option<String>) {
    match response {
        Ok(response) => {
            let redirect = response.status.is_redirection();
            let error = redirect.then(|| "redirects are not followed".to_owned());
            // Postgres cannot store NUL characters.
            let text = String::from_utf8_lossy(&response.beginning).replace('\0', "");
            let body = (!text.is_empty()).then_some(text);
            (Some(response.status.as_u16()), error, body)
        }
        Err(error) => (None, Some(error.to_string()), None),
    }
}
