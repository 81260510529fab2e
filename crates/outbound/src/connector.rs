use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use http::Uri;
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder, MaybeHttpsStream};
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioIo;
use rustls::crypto::ring;
use tokio::net::TcpStream;
use tower_service::Service;

use crate::guarded_resolver::GuardedResolver;

/// How long a peer may leave data unacknowledged, and how often an idle connection is probed.
const TCP_TIMEOUT: Duration = Duration::from_secs(30);
const KEEPALIVE: Duration = Duration::from_secs(15);
const KEEPALIVE_PROBES: u32 = 3;

type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// Opens connections to permitted addresses, within a limit that covers the lookup, the connection and TLS.
#[derive(Clone)]
pub(crate) struct Connector {
    inner: HttpsConnector<HttpConnector<GuardedResolver>>,
    timeout: Duration,
}

impl Connector {
    /// # Errors
    /// The certificates that the system trusts cannot be read.
    pub(crate) fn new(resolver: GuardedResolver, timeout: Duration) -> io::Result<Self> {
        let mut http = HttpConnector::new_with_resolver(resolver);
        http.enforce_http(false);
        http.set_nodelay(true);
        // A name may have several addresses; each gets a part of the time.
        http.set_connect_timeout(Some(timeout));
        http.set_keepalive(Some(KEEPALIVE));
        http.set_keepalive_interval(Some(KEEPALIVE));
        http.set_keepalive_retries(Some(KEEPALIVE_PROBES));
        http.set_tcp_user_timeout(Some(TCP_TIMEOUT));
        let inner = HttpsConnectorBuilder::new()
            .with_provider_and_platform_verifier(Arc::new(ring::default_provider()))?
            .https_or_http()
            .enable_http1()
            .wrap_connector(http);
        Ok(Self { inner, timeout })
    }
}

impl Service<Uri> for Connector {
    type Response = MaybeHttpsStream<TokioIo<TcpStream>>;
    type Error = BoxError;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, BoxError>> + Send>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, uri: Uri) -> Self::Future {
        let connected = tokio::time::timeout(self.timeout, self.inner.call(uri));
        Box::pin(async move {
            connected
                .await
                .unwrap_or_else(|_| Err(io::Error::from(io::ErrorKind::TimedOut).into()))
        })
    }
}
