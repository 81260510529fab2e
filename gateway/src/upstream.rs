//! The services behind the gateway, and the HTTP client that reaches them.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response, Uri};
use http_body_util::{BodyExt as _, Full, Limited};
use hyper::body::Incoming;
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use rustls::crypto::ring;
use tokio::time::timeout;
use url::Url;

const CONNECT_TIMEOUT: Duration = Duration::from_secs(2);
/// Shorter than the 75 s for which services keep idle connections, so that they never close one in use.
const IDLE_TIMEOUT: Duration = Duration::from_secs(30);
const IDLE_CONNECTIONS: usize = 256;
/// How long a service may leave data unacknowledged, and how often an idle connection is probed: one whose machine is gone
/// ends without a word, and a request on it would wait for the service's timeout.
const TCP_TIMEOUT: Duration = Duration::from_secs(10);
const KEEPALIVE: Duration = Duration::from_secs(10);
const KEEPALIVE_PROBES: u32 = 3;
const HEALTH_TIMEOUT: Duration = Duration::from_secs(1);
/// The largest response of a health check in bytes.
const HEALTH_LENGTH: usize = 64 * 1024;

pub(crate) type Connector = HttpsConnector<HttpConnector>;

/// A client for the services, which speaks HTTP/1.1. It follows no redirects and knows no proxies.
pub(crate) type UpstreamClient = Client<Connector, Full<Bytes>>;

/// The address of a service, to which paths are added.
#[derive(Debug, Clone)]
pub(crate) struct BaseAddress(Uri);

impl BaseAddress {
    pub(crate) fn new(url: &Url) -> anyhow::Result<Self> {
        let uri: Uri = url.as_str().parse()?;
        let has_host = uri.host().is_some();
        anyhow::ensure!(has_host, "the address of a service needs a host");
        Ok(Self(uri))
    }

    pub(crate) fn uri(&self, path: &str, query: Option<&str>) -> Result<Uri, http::Error> {
        let base = self.0.path().trim_end_matches('/');
        let target = match query.filter(|query| !query.is_empty()) {
            Some(query) => [base, path, "?", query].concat(),
            None => [base, path].concat(),
        };
        let mut parts = self.0.clone().into_parts();
        parts.path_and_query = Some(target.try_into()?);
        Ok(Uri::from_parts(parts)?)
    }
}

/// Prepares TLS, which only services at another place need, with the certificates that the system trusts.
pub(crate) fn connector() -> anyhow::Result<Connector> {
    let mut connector = HttpConnector::new();
    connector.enforce_http(false);
    connector.set_nodelay(true);
    connector.set_connect_timeout(Some(CONNECT_TIMEOUT));
    connector.set_keepalive(Some(KEEPALIVE));
    connector.set_keepalive_interval(Some(KEEPALIVE));
    connector.set_keepalive_retries(Some(KEEPALIVE_PROBES));
    connector.set_tcp_user_timeout(Some(TCP_TIMEOUT));
    Ok(HttpsConnectorBuilder::new()
        .with_provider_and_platform_verifier(Arc::new(ring::default_provider()))?
        .https_or_http()
        .enable_http1()
        .wrap_connector(connector))
}

/// A client with a pool of its own.
pub(crate) fn client(connector: &Connector) -> UpstreamClient {
    Client::builder(TokioExecutor::new())
        .pool_timer(TokioTimer::new())
        .pool_idle_timeout(IDLE_TIMEOUT)
        .pool_max_idle_per_host(IDLE_CONNECTIONS)
        .build(connector.clone())
}

/// Gets a response of a service whose body has not been read, unless its status is an error.
pub(crate) async fn open(client: &UpstreamClient, uri: Uri) -> anyhow::Result<Response<Incoming>> {
    let request = Request::get(uri).body(Full::default())?;
    let response = client.request(request).await?;
    let status = response.status();
    anyhow::ensure!(status.is_success(), "the status is {status}");
    Ok(response)
}

pub(crate) async fn is_alive(client: UpstreamClient, uri: Uri) -> bool {
    let response = async {
        let body = open(&client, uri).await?.into_body();
        let body = Limited::new(body, HEALTH_LENGTH).collect().await;
        body.map(drop).map_err(anyhow::Error::from_boxed)
    };
    timeout(HEALTH_TIMEOUT, response)
        .await
        .is_ok_and(|read| read.is_ok())
}
