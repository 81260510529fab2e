use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};
use std::vec::IntoIter;

use anyhow::Context as _;
use bytes::Bytes;
use http::header::{ACCEPT, AUTHORIZATION, USER_AGENT};
use http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode, Uri};
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper_rustls::{HttpsConnectorBuilder, MaybeHttpsStream};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::client::legacy::connect::dns::Name;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use rustls::ClientConfig;
use rustls::client::Resumption;
use rustls::crypto::ring;
use tokio::net::TcpStream;
use tokio_util::sync::CancellationToken;
use tower::timeout::Timeout;
use tower::util::{BoxCloneSyncService, ServiceExt as _, service_fn};

use crate::certificates::FewCertificates;
use crate::connection::{ClosableStream, RequestConnection};
use crate::resolver::{current_owner, scoped};
use crate::{AddressPolicy, Resolve, Resolved, SendError, TargetUrl, Unresolved};

/// The part of a request's time for connecting: the lookup, the connection and TLS.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// Shorter than the idle timeout of common servers (Node's is 5 s), so that requests seldom use a connection
/// that the server is closing.
const IDLE_TIMEOUT: Duration = Duration::from_secs(4);
/// How long to wait for the body once the status is known, unless the caller needs more than 1 KiB of it.
const BODY_TIMEOUT: Duration = Duration::from_secs(1);
const BODY_BYTES: usize = 1024;
/// The bytes that a connection holds, and so the largest head of a response. Hyper's default of 408 KiB would let 2,000
/// receivers that never end their heads take 800 MiB.
const MAX_BUFFER: usize = 32 * 1024;
/// How long a peer may leave data unacknowledged, and how often an idle connection is probed.
const TCP_TIMEOUT: Duration = Duration::from_secs(30);
const KEEPALIVE: Duration = Duration::from_secs(15);
const KEEPALIVE_PROBES: u32 = 3;

/// The head of a response and the beginning of its body.
#[derive(Debug, Clone)]
pub struct TruncatedResponse {
    /// The status.
    pub status: StatusCode,
    /// The headers.
    pub headers: HeaderMap,
    /// The first bytes of the body, at most [`Call::body_bytes`].
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
    /// The maximum number of bytes of the response's body; the rest is not read.
    pub body_bytes: usize,
}

/// An HTTP client for URLs that come from callers.
#[derive(Debug, Clone)]
pub struct GuardedClient {
    client: Client<Connector, Full<Bytes>>,
    policy: AddressPolicy,
    timeout: Duration,
}

impl GuardedClient {
    /// Creates a client that calls only addresses that the policy permits, and keeps at most `idle_per_host` idle
    /// connections to each host. A request may take `timeout` from the DNS lookup to the response head.
    ///
    /// # Errors
    /// TLS cannot be set up.
    pub fn new(
        policy: AddressPolicy,
        resolver: Arc<dyn Resolve>,
        timeout: Duration,
        idle_per_host: usize,
    ) -> anyhow::Result<Self> {
        let connector = connector(policy.clone(), resolver);
        let connector = connector.context("the HTTP client cannot be created")?;
        let client = Client::builder(TokioExecutor::new())
            .timer(TokioTimer::new())
            .pool_timer(TokioTimer::new())
            .pool_idle_timeout(IDLE_TIMEOUT)
            .pool_max_idle_per_host(idle_per_host)
            .http1_max_buf_size(MAX_BUFFER)
            // A recipient replaces each line end within a header by a space (RFC 9112 section 5.2).
            .http1_allow_obsolete_multiline_headers_in_responses(true)
            .build(connector);
        Ok(Self {
            client,
            policy,
            timeout,
        })
    }

    /// Sends a call and returns the response, whatever its status.
    ///
    /// # Errors
    /// No response head arrived in time, or the policy does not permit the URL or its addresses.
    pub async fn send(&self, url: &TargetUrl, call: Call) -> Result<TruncatedResponse, SendError> {
        // The resolver is not asked for a literal address.
        self.policy.check_url(url.parsed())?;
        let body_bytes = call.body_bytes;
        let (mut connection, request) = RequestConnection::of(request(url, call));
        let call = CancellationToken::new();
        let _ending = call.clone().drop_guard();
        let sent = CALL.scope(call, self.client.request(request));
        let started = Instant::now();
        let response = match tokio::time::timeout(self.timeout, sent).await {
            Ok(Ok(response)) => response,
            // Only connecting has a limit of its own.
            Ok(Err(error)) => return Err(SendError::of(&error, CONNECT_TIMEOUT.min(self.timeout))),
            Err(_) => return Err(SendError::TimedOut(self.timeout)),
        };
        connection.respond();
        let left = self.timeout.saturating_sub(started.elapsed());
        let time_limit = if body_bytes > BODY_BYTES {
            left.max(BODY_TIMEOUT)
        } else {
            BODY_TIMEOUT
        };
        Ok(read_beginning(response, body_bytes, time_limit).await)
    }
}

/// Reads the beginning of the body. The response counts even if that fails.
async fn read_beginning(
    response: Response<Incoming>,
    body_bytes: usize,
    time_limit: Duration,
) -> TruncatedResponse {
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
    let _ = tokio::time::timeout(time_limit, reading).await;
    beginning.truncate(body_bytes);
    TruncatedResponse {
        status: head.status,
        headers: head.headers,
        beginning,
    }
}

fn request(url: &TargetUrl, call: Call) -> Request<Bytes> {
    const AGENT: &str = concat!("countersign/", env!("CARGO_PKG_VERSION"));
    let mut headers = call.headers;
    headers.insert(USER_AGENT, HeaderValue::from_static(AGENT));
    let accept = HeaderValue::from_static("*/*");
    headers.entry(ACCEPT).or_insert(accept);
    if let Some(authorization) = &url.authorization {
        headers.insert(AUTHORIZATION, authorization.clone());
    }
    let mut request = Request::new(call.body);
    *request.method_mut() = call.method;
    *request.uri_mut() = url.uri.clone();
    *request.headers_mut() = headers;
    request
}

type BoxError = Box<dyn std::error::Error + Send + Sync>;
type Connection = ClosableStream<MaybeHttpsStream<TokioIo<TcpStream>>>;
type Connector = BoxCloneSyncService<Uri, Connection, BoxError>;

tokio::task_local! {
    /// Cancelled when the call of this task ends.
    static CALL: CancellationToken;
}

/// Opens connections to permitted addresses, within a limit that covers the lookup, the connection and TLS.
fn connector(
    policy: AddressPolicy,
    resolver: Arc<dyn Resolve>,
) -> Result<Connector, rustls::Error> {
    let resolve = move |name: Name| permitted(policy.clone(), resolver.resolve(name.as_str()));
    let mut http = HttpConnector::new_with_resolver(service_fn(resolve));
    http.enforce_http(false);
    http.set_nodelay(true);
    // A name may have several addresses; each gets a part of the time.
    http.set_connect_timeout(Some(CONNECT_TIMEOUT));
    http.set_keepalive(Some(KEEPALIVE));
    http.set_keepalive_interval(Some(KEEPALIVE));
    http.set_keepalive_retries(Some(KEEPALIVE_PROBES));
    http.set_tcp_user_timeout(Some(TCP_TIMEOUT));
    let https = HttpsConnectorBuilder::new()
        .with_tls_config(tls()?)
        .https_or_http()
        .enable_http1()
        .wrap_connector(http);
    let of_call = https.map_future(|connecting| scoped(current_owner(), during_call(connecting)));
    let limited = Timeout::new(of_call, CONNECT_TIMEOUT);
    let closable = limited.map_response(ClosableStream::new);
    Ok(BoxCloneSyncService::new(closable))
}

fn tls() -> Result<ClientConfig, rustls::Error> {
    let provider = Arc::new(ring::default_provider());
    let verifier = FewCertificates::new(Arc::clone(&provider))?;
    let config = ClientConfig::builder_with_provider(provider);
    let config = config.with_safe_default_protocol_versions()?;
    let config = config.dangerous();
    let config = config.with_custom_certificate_verifier(Arc::new(verifier));
    let mut config = config.with_no_client_auth();
    // Receivers decide how large their tickets are.
    config.resumption = Resumption::disabled();
    Ok(config)
}

/// Opens a connection, until the call ends for which it is opened. A call that got another one meanwhile would leave it behind.
fn during_call<T>(
    connecting: impl Future<Output = Result<T, BoxError>>,
) -> impl Future<Output = Result<T, BoxError>> {
    let call = CALL.try_with(Clone::clone).unwrap_or_default();
    async move {
        let connected = call.run_until_cancelled(connecting).await;
        connected.unwrap_or_else(|| Err("the call has ended".into()))
    }
}

async fn permitted(
    policy: AddressPolicy,
    resolved: Resolved,
) -> Result<IntoIter<SocketAddr>, BoxError> {
    let mut refusal = None;
    let mut permitted = Vec::new();
    for address in resolved.await? {
        match policy.check_address(address) {
            Ok(address) => permitted.push(SocketAddr::new(address, 0)),
            Err(refused) => refusal = Some(refused),
        }
    }
    match refusal {
        Some(refusal) if permitted.is_empty() => Err(refusal.into()),
        _ if permitted.is_empty() => Err(Unresolved::NoAddress.into()),
        _ => Ok(permitted.into_iter()),
    }
}
