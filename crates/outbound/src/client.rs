use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::header::{ACCEPT, AUTHORIZATION, USER_AGENT};
use http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode};
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper_util::client::legacy::Client;
use hyper_util::rt::{TokioExecutor, TokioTimer};

use crate::connector::{Connector, GuardedResolver};
use crate::{AddressPolicy, BuildError, Resolve, SendError, TargetUrl};

/// Shorter than the idle timeout of common servers (Node's is 5 s), so that requests seldom use a connection
/// that the server is closing.
const IDLE_TIMEOUT: Duration = Duration::from_secs(4);
/// How long to wait for the body once the status is known.
const BODY_TIMEOUT: Duration = Duration::from_secs(1);

/// Limits of one request.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// From the DNS lookup to the response head.
    pub timeout: Duration,
    /// The part of it for connecting.
    pub connect_timeout: Duration,
    /// The maximum number of idle connections to one host.
    pub idle_per_host: usize,
    /// The maximum number of bytes of a response body; the rest is not read.
    pub body_bytes: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            timeout: Duration::from_secs(10),
            connect_timeout: Duration::from_secs(5),
            idle_per_host: 16,
            body_bytes: 1024,
        }
    }
}

/// The head of a response and the beginning of its body.
#[derive(Debug, Clone)]
pub struct TruncatedResponse {
    /// The status.
    pub status: StatusCode,
    /// The headers.
    pub headers: HeaderMap,
    /// The first bytes of the body, at most [`Limits::body_bytes`].
    pub beginning: Vec<u8>,
}

/// What is sent to a URL.
#[derive(Debug)]
pub struct Call {
    /// The method.
    pub method: Method,
    /// The headers. `User-Agent` is the client's own; without `Accept` it takes everything.
    pub headers: HeaderMap,
    /// The body.
    pub body: Bytes,
    /// The maximum number of bytes of the response's body, in place of [`Limits::body_bytes`].
    pub body_bytes: usize,
}

/// An HTTP client for URLs that come from callers.
#[derive(Debug, Clone)]
pub struct GuardedClient {
    client: Client<Connector, Full<Bytes>>,
    policy: AddressPolicy,
    limits: Limits,
}

impl GuardedClient {
    /// Creates a client that calls only addresses that the policy permits.
    ///
    /// # Errors
    /// TLS cannot be set up.
    pub fn new(
        policy: AddressPolicy,
        resolver: Arc<dyn Resolve>,
        limits: Limits,
    ) -> Result<Self, BuildError> {
        let guarded = GuardedResolver {
            policy: policy.clone(),
            resolver,
        };
        let connector =
            Connector::new(guarded, limits.connect_timeout).map_err(BuildError::Client)?;
        let client = Client::builder(TokioExecutor::new())
            .timer(TokioTimer::new())
            .pool_timer(TokioTimer::new())
            .pool_idle_timeout(IDLE_TIMEOUT)
            .pool_max_idle_per_host(limits.idle_per_host)
            .build(connector);
        Ok(Self {
            client,
            policy,
            limits,
        })
    }

    /// Posts a body and returns the response, whatever its status.
    ///
    /// # Errors
    /// No response head arrived in time, or the policy does not permit the URL or its addresses.
    pub async fn post(
        &self,
        url: &TargetUrl,
        headers: HeaderMap,
        body: impl Into<Bytes>,
    ) -> Result<TruncatedResponse, SendError> {
        let call = Call {
            method: Method::POST,
            headers,
            body: body.into(),
            body_bytes: self.limits.body_bytes,
        };
        self.send(url, call).await
    }

    /// Sends a call and returns the response, whatever its status.
    ///
    /// # Errors
    /// Like [`GuardedClient::post`].
    pub async fn send(&self, url: &TargetUrl, call: Call) -> Result<TruncatedResponse, SendError> {
        // The resolver is not asked for a literal address.
        self.policy.check_url(url.parsed())?;
        let body_bytes = call.body_bytes;
        let (timeout, connect_timeout) = (self.limits.timeout, self.limits.connect_timeout);
        let sent = self.client.request(request(url, call));
        let response = match tokio::time::timeout(timeout, sent).await {
            Ok(Ok(response)) => response,
            // Only connecting has a limit of its own.
            Ok(Err(error)) => return Err(SendError::of(&error, connect_timeout.min(timeout))),
            Err(_) => return Err(SendError::TimedOut(timeout)),
        };
        Ok(read_beginning(response, body_bytes).await)
    }
}

/// Reads the beginning of the body. The response counts even if that fails.
async fn read_beginning(response: Response<Incoming>, body_bytes: usize) -> TruncatedResponse {
    let (head, mut body) = response.into_parts();
    let mut beginning = Vec::new();
    let reading = async {
        while beginning.len() <= body_bytes
            && let Some(Ok(frame)) = body.frame().await
        {
            let chunk = frame.into_data().unwrap_or_default();
            beginning.extend_from_slice(&chunk);
        }
    };
    let _ = tokio::time::timeout(BODY_TIMEOUT, reading).await;
    beginning.truncate(body_bytes);
    TruncatedResponse {
        status: head.status,
        headers: head.headers,
        beginning,
    }
}

fn request(url: &TargetUrl, call: Call) -> Request<Full<Bytes>> {
    const AGENT: &str = concat!("countersign/", env!("CARGO_PKG_VERSION"));
    let mut headers = call.headers;
    headers.insert(USER_AGENT, HeaderValue::from_static(AGENT));
    let accept = HeaderValue::from_static("*/*");
    headers.entry(ACCEPT).or_insert(accept);
    if let Some(authorization) = url.authorization() {
        headers.insert(AUTHORIZATION, authorization.clone());
    }
    let mut request = Request::new(Full::new(call.body));
    *request.method_mut() = call.method;
    *request.uri_mut() = url.uri().clone();
    *request.headers_mut() = headers;
    request
}
