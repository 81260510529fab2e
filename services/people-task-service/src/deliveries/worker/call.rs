//! What a delivery sends: the usual call, or what the options of its webhook make of it.

use std::sync::Arc;

use fairness::Shares;
use outbound::{Call, EngineOrigins, GuardedClient, SendError, TargetUrl, TruncatedResponse};
use reqwest::Method;
use reqwest::StatusCode;
use reqwest::header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use telemetry::RequestContext;
use values::UntrustedJson;

use crate::deliveries::worker::due_store::DueRow;
use crate::deliveries::worker::schedule::RetrySchedule;
use crate::header_keys::HeaderKeys;
use crate::tasks::{Occasion, Relations, TaskResponse};
use crate::webhook_options::{CallMethod, Success, WebhookOptions, template};
use crate::webhook_signature::WebhookSigner;

/// How much of an answer is kept for the list of attempts.
pub(super) const KEPT_BYTES: usize = 1024;
/// The largest body. Templates and tasks that would make a larger one are refused before.
const MAX_BODY: usize = 512 * 1024;
/// The number of headers of a call without headers of its registration, with those that the client adds.
const USUAL_HEADERS: usize = 10;

/// The options of a webhook, or why nothing can be sent with them.
pub(super) type Options = Result<WebhookOptions, SendError>;

/// The options of a delivery's webhook; the default ones if it has none.
pub(super) fn options_of(row: &DueRow) -> Options {
    let Some(text) = &row.options else {
        return Ok(WebhookOptions::default());
    };
    let reason = "the webhook needs a webhook-worker of a later version";
    WebhookOptions::parse(text).ok_or_else(|| not_sent(reason))
}

pub(super) struct Sender {
    pub(super) client: GuardedClient,
    pub(super) public_client: GuardedClient,
    pub(super) engine_origins: EngineOrigins,
    pub(super) header_keys: HeaderKeys,
    pub(super) signer: WebhookSigner,
    /// The bytes of the bodies that are being sent, and of the answers that are kept.
    pub(super) bodies: Arc<Shares<String>>,
    pub(super) schedule: RetrySchedule,
}

pub(super) fn not_sent(reason: impl Into<String>) -> SendError {
    SendError::NotSent(reason.into())
}

impl Sender {
    pub(super) fn prepare(
        &self,
        mut row: Box<DueRow>,
        options: &Options,
        occasion: Occasion,
        registrant: Relations,
    ) -> Result<(&GuardedClient, TargetUrl, Call), SendError> {
        let url = TargetUrl::parse(&row.url).map_err(|_| not_sent("the URL is invalid"))?;
        let options = options.as_ref().map_err(SendError::clone)?;
        let mut headers = self.own_headers(&row, &url, options)?;
        let (id, timestamp) = (row.delivery_id, row.clock.now().timestamp());
        let secret = row.secret.take();
        let body = body(row, options, occasion, registrant)?;
        let (secret, is_made_by_user) = (secret.as_deref(), options.body.is_some());
        let signature = self
            .signer
            .sign(id, timestamp, &body, is_made_by_user, secret);
        let context = RequestContext::current_or_fresh();
        let json = HeaderValue::from_static("application/json");
        headers.entry(CONTENT_TYPE).or_insert(json);
        let is_test = matches!(occasion, Occasion::Test);
        for (name, text) in [
            ("webhook-id", Some(id.to_string())),
            ("webhook-timestamp", Some(timestamp.to_string())),
            ("webhook-signature", signature),
            ("webhook-test", is_test.then(|| "true".to_owned())),
            ("x-request-id", Some(context.request_id)),
            ("traceparent", Some(context.trace.to_string())),
        ] {
            if let Some(Ok(value)) = text.map(HeaderValue::try_from) {
                headers.insert(HeaderName::from_static(name), value);
            }
        }
        let needed = options.success.as_ref().map_or(0, Success::needed_bytes);
        let call = Call {
            method: method(options),
            headers,
            body: body.into(),
            body_bytes: needed.max(KEPT_BYTES),
        };
        Ok((self.client_for(&url, options), url, call))
    }

    /// A call whose request a user shapes, and that is not for a flow engine, may go to public addresses only.
    fn client_for(&self, url: &TargetUrl, options: &WebhookOptions) -> &GuardedClient {
        if options.shape_the_request() && !self.engine_origins.contain(url.parsed()) {
            &self.public_client
        } else {
            &self.client
        }
    }

    fn own_headers(
        &self,
        row: &DueRow,
        url: &TargetUrl,
        options: &WebhookOptions,
    ) -> Result<HeaderMap, SendError> {
        let mut headers = HeaderMap::with_capacity(USUAL_HEADERS);
        let Some(sealed) = &options.headers else {
            return Ok(headers);
        };
        if url.parsed().scheme() != "https" && !self.engine_origins.contain(url.parsed()) {
            let reason = "headers go over https only, or to an origin in WEBHOOK_ENGINE_ORIGINS";
            return Err(not_sent(reason));
        }
        let reason = "the headers cannot be opened: WEBHOOK_HEADER_KEYS of the webhook-worker lacks their key";
        let opened = self.header_keys.open(row.webhook_id, sealed);
        for (name, value) in opened.ok_or_else(|| not_sent(reason))? {
            let name = HeaderName::try_from(name).map_err(|_| not_sent("a header is invalid"))?;
            let value = HeaderValue::try_from(value.expose());
            let mut value = value.map_err(|_| not_sent("a header is invalid"))?;
            value.set_sensitive(true);
            headers.insert(name, value);
        }
        Ok(headers)
    }
}

fn method(options: &WebhookOptions) -> Method {
    match options.method {
        None | Some(CallMethod::Post) => Method::POST,
        Some(CallMethod::Put) => Method::PUT,
        Some(CallMethod::Patch) => Method::PATCH,
    }
}

fn body(
    row: Box<DueRow>,
    options: &WebhookOptions,
    occasion: Occasion,
    registrant: Relations,
) -> Result<Vec<u8>, SendError> {
    let (task, is_plugin, included) = (row.task, row.with_task_id, options.fields());
    let body = if let Some(template) = &options.body {
        let values = TaskResponse::values_for_webhook(task, occasion, registrant);
        values.and_then(|values| {
            let UntrustedJson(template) = serde_json::from_str(template.get())?;
            serde_json::to_vec(&template::render(&template, &values))
        })
    } else {
        let body = TaskResponse::for_webhook(task, is_plugin, occasion, registrant, included);
        serde_json::to_vec(&body)
    };
    let body = body.map_err(|_| not_sent("the body cannot be made"))?;
    if body.len() > MAX_BODY {
        return Err(not_sent("the body is too large"));
    }
    Ok(body)
}

/// What the test of a webhook's registration says about an answer; `None` without a test or an answer, or if the answer
/// means the same for every webhook: no redirect is followed, the receiver is gone or overloaded.
pub(super) fn judge(
    options: &Options,
    response: &Result<TruncatedResponse, SendError>,
) -> Option<Result<(), String>> {
    let (options, response) = (options.as_ref().ok()?, response.as_ref().ok()?);
    let success = options.success.as_ref()?;
    match response.status {
        StatusCode::GONE | StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE => None,
        status if status.is_redirection() => None,
        status => Some(success.judge(status, &response.beginning)),
    }
}
