use std::panic::AssertUnwindSafe;
use std::time::{Duration, Instant};

use chrono::{DateTime, Utc};
use futures_util::FutureExt as _;
use outbound::{Answer, GuardedClient, SendError};
use reqwest::header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use telemetry::RequestContext;
use url::Url;
use values::FromText as _;

use crate::deliveries::worker::schedule::{RetrySchedule, Verdict, jitter};
use crate::deliveries::worker::store::Claimed;
use crate::tasks::TaskAnswer;
use crate::webhooks::signing::{WebhookSecret, WebhookSigner};

/// What every attempt needs.
#[derive(Debug)]
pub(super) struct Sending {
    pub(super) client: GuardedClient,
    pub(super) signer: WebhookSigner,
    pub(super) schedule: RetrySchedule,
}

/// A claimed delivery, and until when the claim holds by the clock of this process.
pub(super) struct Held {
    pub(super) claimed: Claimed,
    pub(super) until: Instant,
}

/// An attempt that has ended, to be written down.
#[derive(Debug)]
pub(super) struct Finished {
    pub(super) held: HeldFor,
    pub(super) at: DateTime<Utc>,
    pub(super) duration: Duration,
    pub(super) verdict: Verdict,
    pub(super) status_code: Option<u16>,
    pub(super) error: Option<String>,
    pub(super) response: Option<String>,
}

/// What is needed of a claim to write its result.
#[derive(Debug)]
pub(super) struct HeldFor {
    pub(super) delivery: values::DeliveryId,
    pub(super) webhook: values::WebhookId,
    pub(super) lease: i64,
    pub(super) origin: String,
    pub(super) decided: DateTime<Utc>,
    pub(super) context: RequestContext,
    pub(super) until: Instant,
}

impl Held {
    fn key(&self) -> HeldFor {
        let claimed = &self.claimed;
        HeldFor {
            delivery: claimed.delivery_id,
            webhook: claimed.webhook_id,
            lease: claimed.lease,
            origin: claimed.origin.clone(),
            decided: claimed.decided,
            context: RequestContext::continued(
                Some(&claimed.request_id),
                Some(&claimed.traceparent),
            ),
            until: self.until,
        }
    }
}

impl Sending {
    /// Sends a delivery once. A panic on the way counts as a failed attempt, so that a delivery that cannot
    /// be handled ends as others do.
    pub(super) async fn attempt(&self, held: Held) -> Finished {
        let key = held.key();
        let context = key.context.clone();
        let earlier = usize::try_from(held.claimed.attempts).unwrap_or_default();
        let (at, started) = (Utc::now(), Instant::now());
        let sending = Box::pin(self.send(held.claimed, &context));
        let sending = AssertUnwindSafe(sending).catch_unwind();
        let answer = context.clone().scope("webhook.attempt", sending).await;
        let answer = answer.unwrap_or_else(|_| {
            tracing::error!(delivery.id = %key.delivery, "an attempt panicked");
            Err(SendError::Broken("a fault of ours".to_owned()))
        });
        let duration = started.elapsed();
        let verdict = self.schedule.judge(earlier, &answer, jitter());
        let (status_code, error, response) = describe(answer);
        Finished {
            held: key,
            at,
            duration,
            verdict,
            status_code,
            error,
            response,
        }
    }

    async fn send(&self, claimed: Claimed, context: &RequestContext) -> Result<Answer, SendError> {
        let unusable = |what: &str| SendError::Broken(what.to_owned());
        let url = Url::parse(&claimed.url).map_err(|_| unusable("the url cannot be read"))?;
        let secret = claimed.secret.as_deref().map(WebhookSecret::from_text);
        let secret = secret.and_then(Result::ok);
        let (id, timestamp) = (claimed.delivery_id, Utc::now().timestamp());
        let body = TaskAnswer::for_webhook(claimed.task, claimed.with_task_id);
        let body = serde_json::to_vec(&body).map_err(|_| unusable("the task cannot be written"))?;
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

/// The answer in the form in which it is kept: status, what went wrong, the beginning of the body.
fn describe(answer: Result<Answer, SendError>) -> (Option<u16>, Option<String>, Option<String>) {
    match answer {
        Ok(answer) => {
            let redirect = answer.status.is_redirection();
            let error = redirect.then(|| "redirects are not followed".to_owned());
            // Postgres keeps no NUL characters.
            let text = String::from_utf8_lossy(&answer.beginning).replace('\0', "");
            let response = (!text.is_empty()).then_some(text);
            (Some(answer.status.as_u16()), error, response)
        }
        Err(error) => (None, Some(error.to_string()), None),
    }
}
