use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;
use std::vec::IntoIter;

use http::Uri;
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder, MaybeHttpsStream};
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::client::legacy::connect::dns::Name;
use hyper_util::rt::TokioIo;
use rustls::crypto::ring;
use tokio::net::TcpStream;
use tower_service::Service;

use crate::{AddressPolicy, Resolve, Unresolved, owner};

/// How long a peer may leave data unacknowledged, and how often an idle connection is probed.
const TCP_TIMEOUT: Duration = Duration::from_secs(30);
const KEEPALIVE: Duration = Duration::from_secs(15);
const KEEPALIVE_PROBES: u32 = 3;

type BoxError = Box<dyn std::error::Error + Send + Sync>;
type Connecting<T> = Pin<Box<dyn Future<Output = Result<T, BoxError>> + Send>>;

/// Resolves hosts for the HTTP client, to permitted addresses only.
#[derive(Clone)]
pub(crate) struct GuardedResolver {
    pub(crate) policy: AddressPolicy,
    pub(crate) resolver: Arc<dyn Resolve>,
}

impl Service<Name> for GuardedResolver {
    type Response = IntoIter<SocketAddr>;
    type Error = BoxError;
    type Future = Connecting<Self::Response>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, name: Name) -> Self::Future {
        let policy = self.policy.clone();
        let resolved = self.resolver.resolve(name.as_str());
        Box::pin(async move {
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
        })
    }
}

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
    type Future = Connecting<Self::Response>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, uri: Uri) -> Self::Future {
        let connecting = owner::scoped(owner::current(), self.inner.call(uri));
        let connected = tokio::time::timeout(self.timeout, connecting);
        Box::pin(async move {
            connected
                .await
                .unwrap_or_else(|_| Err(io::Error::from(io::ErrorKind::TimedOut).into()))
        })
    }
}
