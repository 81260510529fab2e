use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use bytes::Bytes;
use reqwest::header::{HeaderMap, RETRY_AFTER};
use reqwest::redirect::Policy;
use reqwest::{Response, StatusCode};
use url::Url;

use crate::resolver::Guarded;
use crate::{AddressPolicy, BuildError, Resolve, SendError};

/// Shorter than the idle limit of common servers (Node's is 5 s), so that a request seldom meets a
/// connection that is being closed.
const IDLE_TIMEOUT: Duration = Duration::from_secs(4);
/// How long the rest of an answer is waited for once its status is known.
const BODY_PATIENCE: Duration = Duration::from_secs(1);

/// What one request may take.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// From the first byte of the lookup to the answer's head.
    pub timeout: Duration,
    /// The part of it that connecting may take.
    pub connect_timeout: Duration,
    /// Connections to one host that are kept for the next request.
    pub idle_per_host: usize,
    /// Bytes of an answer that are kept; the rest is not read.
    pub answer: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            timeout: Duration::from_secs(10),
            connect_timeout: Duration::from_secs(5),
            idle_per_host: 16,
            answer: 1024,
        }
    }
}

/// An answer's head and the beginning of its body.
#[derive(Debug, Clone)]
pub struct Answer {
    /// The status.
    pub status: StatusCode,
    /// The headers.
    pub headers: HeaderMap,
    /// The first bytes of the body, at most [`Limits::answer`].
    pub beginning: Vec<u8>,
}

impl Answer {
    /// How long `Retry-After` asks to wait, given in seconds or as a date (RFC 9110 section 10.2.3).
    #[must_use]
    pub fn retry_after(&self) -> Option<Duration> {
        let text = self.headers.get(RETRY_AFTER)?.to_str().ok()?.trim();
        if text.bytes().all(|b| b.is_ascii_digit()) {
            // More digits than a number has mean "very long".
            return (!text.is_empty())
                .then(|| Duration::from_secs(text.parse().unwrap_or(u64::MAX)));
        }
        let date = httpdate::parse_http_date(text).ok()?;
        Some(date.duration_since(SystemTime::now()).unwrap_or_default())
    }
}

/// An HTTP client for urls that callers chose.
#[derive(Debug, Clone)]
pub struct GuardedClient {
    client: reqwest::Client,
    policy: AddressPolicy,
    limits: Limits,
}

impl GuardedClient {
    /// A client that calls what the policy permits, and finds hosts by the resolver.
    ///
    /// # Errors
    /// TLS cannot be set up.
    pub fn new(
        policy: AddressPolicy,
        resolver: Arc<dyn Resolve>,
        limits: Limits,
    ) -> Result<Self, BuildError> {
        // The TLS library wants its cryptography chosen once; a second choice would be the same one.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let guarded = Guarded {
            policy: policy.clone(),
            resolver,
        };
        let client = reqwest::Client::builder()
            .user_agent(concat!("countersign/", env!("CARGO_PKG_VERSION")))
            .dns_resolver(Arc::new(guarded))
            .redirect(Policy::none())
            .no_proxy()
            .referer(false)
            .connect_timeout(limits.connect_timeout)
            .timeout(limits.timeout + BODY_PATIENCE)
            .pool_max_idle_per_host(limits.idle_per_host)
            .pool_idle_timeout(IDLE_TIMEOUT)
            .build()?;
        Ok(Self {
            client,
            policy,
            limits,
        })
    }

    /// Posts a body and returns what was answered, whatever the status.
    ///
    /// # Errors
    /// No answer's head came within the time limit, or the url or its address may not be called.
    pub async fn post(
        &self,
        url: &Url,
        headers: HeaderMap,
        body: impl Into<Bytes>,
    ) -> Result<Answer, SendError> {
        // A literal address never reaches the resolver.
        self.policy.check_url(url)?;
        let started = Instant::now();
        let request = self.client.post(url.clone()).headers(headers);
        let sent = request.body(body.into()).send();
        let response = match tokio::time::timeout(self.limits.timeout, sent).await {
            Ok(Ok(response)) => response,
            Ok(Err(error)) => return Err(self.explain(&error, started)),
            Err(_) => return Err(SendError::TimedOut(self.limits.timeout)),
        };
        Ok(self.begin_reading(response).await)
    }

    fn explain(&self, error: &reqwest::Error, started: Instant) -> SendError {
        match SendError::of(error, self.limits.timeout) {
            // The shorter limit of connecting was met.
            SendError::TimedOut(limit) if started.elapsed() < limit => {
                SendError::TimedOut(self.limits.connect_timeout.min(limit))
            }
            reason => reason,
        }
    }

    /// The status counts, whatever becomes of the body.
    async fn begin_reading(&self, mut response: Response) -> Answer {
        let status = response.status();
        let headers = std::mem::take(response.headers_mut());
        let mut beginning = Vec::new();
        let reading = async {
            while beginning.len() <= self.limits.answer
                && let Ok(Some(chunk)) = response.chunk().await
            {
                beginning.extend_from_slice(&chunk);
            }
        };
        let _ = tokio::time::timeout(BODY_PATIENCE, reading).await;
        beginning.truncate(self.limits.answer);
        Answer {
            status,
            headers,
            beginning,
        }
    }
}
