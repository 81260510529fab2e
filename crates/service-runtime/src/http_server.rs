use std::net::{SocketAddr, TcpListener};

use actix_web::HttpServer;
use actix_web::body::MessageBody;
use actix_web::dev::{ServiceFactory, ServiceRequest, ServiceResponse};
use actix_web::middleware::from_fn;
use actix_web::{App, Error};
use anyhow::Context as _;
use rustls::ServerConfig;

use crate::running::Running;
use crate::settings::HttpServerSettings;
use crate::slow_clients;

/// A listening port, with TLS if it has a TLS configuration.
#[derive(Debug)]
pub struct Listener {
    tcp: TcpListener,
    tls: Option<ServerConfig>,
}

impl Listener {
    /// A port that serves TLS if `tls` is given.
    #[must_use]
    pub fn new(tcp: TcpListener, tls: Option<ServerConfig>) -> Self {
        Self { tcp, tls }
    }
}

impl From<TcpListener> for Listener {
    fn from(tcp: TcpListener) -> Self {
        Self::new(tcp, None)
    }
}

/// Binds a port; port 0 binds a free one.
///
/// # Errors
/// The address is in use or does not belong to this machine.
pub fn bind(address: SocketAddr) -> anyhow::Result<(TcpListener, SocketAddr)> {
    let listener = TcpListener::bind(address)
        .with_context(|| format!("LISTEN_ADDRESS {address} cannot be used"))?;
    listener.set_nonblocking(true)?;
    let bound = listener.local_addr()?;
    Ok((listener, bound))
}

/// Serves an application on a listener until the process must stop; then requests in flight finish.
///
/// # Errors
/// The listener cannot be used.
pub fn serve<F, T, B>(
    running: &Running,
    listener: impl Into<Listener>,
    settings: HttpServerSettings,
    app: F,
) -> anyhow::Result<()>
where
    F: Fn() -> App<T> + Send + Clone + 'static,
    T: ServiceFactory<
            ServiceRequest,
            Config = (),
            Response = ServiceResponse<B>,
            Error = Error,
            InitError = (),
        > + 'static,
    B: MessageBody + 'static,
{
    let server = HttpServer::new(move || app().wrap(from_fn(slow_clients::track_requests)))
        .on_connect(move |io, data| slow_clients::watch_connection(settings, io, data))
        .workers(settings.workers)
        .max_connections(settings.max_connections)
        .client_request_timeout(settings.head_timeout)
        .tls_handshake_timeout(settings.head_timeout)
        .keep_alive(settings.keep_alive)
        .shutdown_timeout(settings.grace.as_secs())
        .disable_signals();
    let Listener { tcp, tls } = listener.into();
    let server = match tls {
        None => server.listen(tcp)?,
        Some(tls) => server.listen_rustls_0_23(tcp, tls)?,
    };
    let server = server.run();
    let handle = server.handle();
    let shutdown = running.shutdown();
    running.spawn(async move {
        shutdown.cancelled().await;
        handle.stop(true).await;
    });
    running.spawn(async move {
        if let Err(error) = server.await {
            tracing::error!(%error, "the HTTP server failed");
        }
    });
    Ok(())
}
