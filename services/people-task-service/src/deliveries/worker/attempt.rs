use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::{Duration, Instant};

use chrono::{DateTime, Utc};
use futures_util::FutureExt as _;
use outbound::{SendError, TruncatedResponse, Unresolved, for_owner};
use reqwest::StatusCode;
use telemetry::{RequestContext, SpanKind};
use tokio_util::sync::CancellationToken;
use tracing::Span;
use values::{DeliveryId, Timestamp, UserId, WebhookId};

use crate::deliveries::responses::Attempt;
use crate::deliveries::worker::call::{KEPT_BYTES, Options, Sender, judge, not_sent, options_of};
use crate::deliveries::worker::due_store::{Clock, DueRow, Registrant};
use crate::deliveries::worker::lane::Health;
use crate::deliveries::worker::schedule::{RetryDecision, RetrySchedule, jitter};
use crate::deliveries::{LaneParts, group_of};
use crate::tasks::{Occasion, Permission, Relations, Task};

/// The value of `webhooks.registered_as` for administrators.
const ADMINISTRATOR: &str = "administrator";

/// The longest error that is kept, in characters: parts of some are chosen by receivers.
const MAX_ERROR: usize = 500;

/// Why a slow request was ended before its timeout.
const RECALLED: &str = "ended early, because it was slow and others waited";

/// A finished attempt that is not recorded yet, or why there was none.
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
    pub(super) registrant: UserId,
    /// The version of the row that was loaded.
    pub(super) version: i32,
    /// When it was due. A redelivery changes that, and leaves the version.
    pub(super) next_attempt: DateTime<Utc>,
    /// The number of the worker that sends it; `None` for what is given back, and for calls that try webhooks.
    pub(super) worker: Option<i32>,
    pub(super) lane: Arc<str>,
    pub(super) created: DateTime<Utc>,
    pub(super) is_restarted: bool,
    pub(super) clock: Clock,
    pub(super) context: RequestContext,
}

impl Lease {
    pub(super) fn of(row: &DueRow, worker: Option<i32>) -> Self {
        Self {
            delivery: row.delivery_id,
            webhook: row.webhook_id,
            registrant: row.registrant.registered_by,
            version: row.lease,
            next_attempt: row.next_attempt,
            worker,
            lane: row.lane.as_str().into(),
            created: row.delivery_created,
            is_restarted: row.is_restarted,
            clock: row.clock,
            context: RequestContext::continued(Some(&row.request_id), Some(&row.traceparent)),
        }
    }

    pub(super) fn age(&self) -> Duration {
        (self.clock.now() - self.created)
            .to_std()
            .unwrap_or_default()
    }
}

impl Registrant {
    /// How the user is related to the task, who has the right today with which the webhook was registered; `None`
    /// without that right. What the user service has reported about the user replaces what the token said then.
    ///
    /// Of a webhook of a version before 0.3.0 it is not known what gave the right, so only a deactivated account ends it.
    pub(super) fn relations(&self, task: &Task) -> Option<Relations> {
        if self.is_active == Some(false) {
            return None;
        }
        let Some(registered_as) = &self.registered_as else {
            return Some(Relations::default());
        };
        let email = match self.is_active {
            Some(_) => self.user_email.as_ref(),
            None => self.registrant_email.as_ref(),
        };
        let secret = self.registrant_secret.as_ref();
        let relations = Relations {
            creator: self.registered_by == task.creator,
            approver: email == Some(&task.approver_key) || secret == Some(&task.approver_secret),
            requester: email == Some(&task.requester_key) || secret == Some(&task.requester_secret),
            admin: self.is_admin.unwrap_or(registered_as == ADMINISTRATOR),
            ..Relations::default()
        };
        let may_be_told = relations.allow(Permission::RegisterWebhook);
        may_be_told.then_some(relations)
    }
}

impl AttemptResult {
    /// The result for a delivery that is not sent.
    pub(super) fn without_request(lease: Lease, decision: RetryDecision, reason: &str) -> Self {
        let error = Err(SendError::Broken(reason.to_owned()));
        Self {
            attempt: describe(lease.clock.now(), Duration::ZERO, error, None, false),
            lease,
            duration: Duration::ZERO,
            decision,
            health: Health::Unknown,
        }
    }

    /// How old the delivery was when the receiver responded. It may have taken long to record that.
    pub(super) fn age_at_response(&self) -> Duration {
        let age = (self.attempt.at.0 - self.lease.created).to_std();
        age.unwrap_or_default() + self.duration
    }
}

impl Sender {
    /// Sends a delivery once, or a call that tries a webhook. A panic counts as a failed attempt, so that a delivery that
    /// causes panics ends as others do, and so does a request that ends because its place is recalled.
    ///
    /// The row and the call are boxed, because starting a task copies all of its future.
    pub(super) async fn attempt(
        &self,
        row: Box<DueRow>,
        worker: Option<i32>,
        occasion: Occasion,
        recall: CancellationToken,
    ) -> AttemptResult {
        let lease = Lease::of(&row, worker);
        let Some(registrant) = row.registrant.relations(&row.task) else {
            let decision = RetrySchedule::suspend(lease.age(), row.suspended, jitter());
            return AttemptResult::without_request(lease, decision, "suspended");
        };
        let earlier = usize::try_from(row.attempts).unwrap_or_default();
        let options = options_of(&row);
        let (at, age, started) = (lease.clock.now(), lease.age(), Instant::now());
        let sending = self.send(row, &options, occasion, registrant, &lease.context);
        let response = recall.run_until_cancelled(sending).await;
        let response = response.unwrap_or_else(|| Err(not_sent(RECALLED)));
        let duration = started.elapsed();
        let jitter = jitter();
        let has_headers = matches!(&options, Ok(options) if options.headers.is_some());
        let judged = judge(&options, &response);
        let decision = match &judged {
            Some(Ok(())) => RetryDecision::Sent,
            Some(Err(reason)) => {
                let failed = Err(not_sent(reason.as_str()));
                self.schedule.decide(earlier, age, &failed, jitter)
            }
            None => self.schedule.decide(earlier, age, &response, jitter),
        };
        AttemptResult {
            lease,
            duration,
            decision,
            health: health(&response, judged.as_ref()),
            attempt: describe(at, duration, response, judged, has_headers),
        }
    }

    async fn send(
        &self,
        row: Box<DueRow>,
        options: &Options,
        occasion: Occasion,
        registrant: Relations,
        context: &RequestContext,
    ) -> Result<TruncatedResponse, SendError> {
        let delivery = row.delivery_id;
        let sending = Box::pin(async move {
            let (lane, host) = (row.lane.clone(), row.host.clone());
            let (client, url, call) = self.prepare(row, options, occasion, registrant)?;
            let group = group_of(LaneParts::of(&lane).owner);
            let bytes = (call.body.len() + call.body_bytes) as u64;
            let memory = self.bodies.try_acquire(group.to_owned(), bytes);
            let _memory = memory.map_err(|_| SendError::Full)?;
            let response = for_owner(group, client.send(&url, call)).await;
            let span = Span::current();
            telemetry::set_attribute(&span, "server.address", host);
            match &response {
                Ok(response) => {
                    let status = i64::from(response.status.as_u16());
                    telemetry::set_attribute(&span, "http.response.status_code", status);
                }
                Err(_) => telemetry::set_failed(&span, "no response"),
            }
            response
        });
        let sending = AssertUnwindSafe(sending).catch_unwind();
        let response = context
            .clone()
            .scope(SpanKind::Client, "webhook.attempt", sending)
            .await;
        response.unwrap_or_else(|_| {
            tracing::error!(delivery.id = %delivery, "an attempt panicked");
            Err(SendError::Broken("internal error".to_owned()))
        })
    }
}

/// What a response says about the receiver. One that refuses a request responds. One of 2xx that is no success, such as a
/// page that says that the engine is starting, says that it cannot work now.
fn health(
    response: &Result<TruncatedResponse, SendError>,
    judged: Option<&Result<(), String>>,
) -> Health {
    match (response, judged) {
        (_, Some(Ok(()))) => Health::Responds,
        (Ok(response), Some(Err(_))) if response.status.is_success() => Health::Fails,
        (Ok(response), _) if response.status.is_server_error() => Health::Fails,
        (Ok(response), _) if response.status == StatusCode::TOO_MANY_REQUESTS => Health::Fails,
        (Ok(_), _) => Health::Responds,
        (Err(SendError::Refused(_) | SendError::NotSent(_) | SendError::Full), _) => {
            Health::Unknown
        }
        (Err(SendError::Unresolved(Unresolved::NotAsked)), _) => Health::Unknown,
        (Err(_), _) => Health::Unreachable,
    }
}

/// The attempt as the API shows it, with the reason why the response is no success. A receiver may repeat what it got, so
/// nothing is kept of an answer to a call with headers.
fn describe(
    at: DateTime<Utc>,
    duration: Duration,
    response: Result<TruncatedResponse, SendError>,
    judged: Option<Result<(), String>>,
    has_headers: bool,
) -> Attempt {
    // Postgres cannot store NUL characters.
    let without_nul = |text: &str| text.replace('\0', "");
    let (status_code, error, answer) = match response {
        Ok(response) => {
            let redirect = response.status.is_redirection();
            let error = redirect.then(|| "redirects are not followed".to_owned());
            let kept = response.beginning.get(..KEPT_BYTES);
            let kept = String::from_utf8_lossy(kept.unwrap_or(&response.beginning));
            let text = without_nul(&kept);
            let body = (!text.is_empty()).then_some(text);
            (Some(response.status.as_u16()), error, body)
        }
        Err(error) => (None, Some(error.to_string()), None),
    };
    let error = judged.and_then(Result::err).or(error);
    Attempt {
        at: Timestamp(at),
        duration_ms: i32::try_from(duration.as_millis()).unwrap_or(i32::MAX),
        status_code,
        error: error.map(|text| without_nul(&text).chars().take(MAX_ERROR).collect()),
        response: answer.filter(|_| !has_headers),
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use chrono::{DateTime, Utc};
    use outbound::{SendError, TruncatedResponse, Unresolved};
    use reqwest::StatusCode;
    use telemetry::RequestContext;
    use values::{DeliveryId, UserId, WebhookId};

    use super::{Lease, health};
    use crate::deliveries::worker::due_store::Clock;
    use crate::deliveries::worker::lane::Health;

    #[test]
    fn the_clock_of_the_database_says_how_old_a_delivery_is() {
        let created: DateTime<Utc> = "2020-01-01T00:00:00Z".parse().unwrap();
        let clock = Clock {
            shown: created + Duration::from_secs(5),
            read: Instant::now() - Duration::from_secs(2),
        };
        let lease = Lease {
            delivery: DeliveryId::generate(),
            webhook: WebhookId::generate(),
            registrant: UserId::generate(),
            version: 0,
            next_attempt: created,
            worker: None,
            lane: "".into(),
            created,
            is_restarted: false,
            clock,
            context: RequestContext::fresh(),
        };
        assert_eq!(lease.age().as_secs(), 7);
    }

    #[test]
    fn a_response_says_whether_the_receiver_works_and_an_error_whether_it_was_reached() {
        let no_success = Err("no success".to_owned());
        for (status, judged, expected) in [
            (200, None, Health::Responds),
            (404, None, Health::Responds),
            (410, None, Health::Responds),
            (429, None, Health::Fails),
            (500, None, Health::Fails),
            (200, Some(&no_success), Health::Fails),
            (404, Some(&no_success), Health::Responds),
            (500, Some(&no_success), Health::Fails),
            (500, Some(&Ok(())), Health::Responds),
        ] {
            let response = Ok(TruncatedResponse {
                status: StatusCode::from_u16(status).unwrap(),
                headers: reqwest::header::HeaderMap::new(),
                beginning: Vec::new(),
            });
            let found = health(&response, judged);
            assert_eq!(found, expected, "{status} {judged:?}");
        }
        for (error, expected) in [
            (SendError::ConnectionRefused, Health::Unreachable),
            (Unresolved::NoAddress.into(), Health::Unreachable),
            (Unresolved::NotAsked.into(), Health::Unknown),
            (SendError::Full, Health::Unknown),
        ] {
            assert_eq!(health(&Err(error.clone()), None), expected, "{error}");
        }
    }
}
