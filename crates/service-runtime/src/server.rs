use std::net::{SocketAddr, TcpListener};
use std::time::Duration;

use actix_web::HttpServer;
use actix_web::body::MessageBody;
use actix_web::dev::{ServiceFactory, ServiceRequest, ServiceResponse};
use actix_web::middleware::from_fn;
use actix_web::{App, Error};
use anyhow::Context as _;
use app_config::{Reader, Settings};
use rustls::ServerConfig;

use crate::{Running, connection};

/// How a process serves HTTP.
#[derive(Debug, Clone, Copy)]
pub struct HttpServerSettings {
    /// Threads that serve requests.
    pub workers: usize,
    /// Connections at once, for each thread.
    pub max_connections: usize,
    /// How long the first head of a connection may take, and a TLS handshake.
    pub head_timeout: Duration,
    /// How long a connection may wait for its next request.
    pub keep_alive: Duration,
    /// How long a request may take from its head to the end of its answer.
    pub request_timeout: Duration,
    /// How long requests in flight may take when the process stops.
    pub grace: Duration,
}

impl Settings for HttpServerSettings {
    fn read(reader: &mut Reader) -> Result<Self, app_config::Error> {
        Ok(Self {
            workers: reader.in_range(
                "HTTP_WORKERS",
                "2",
                "a whole number from 1 to 256",
                "Threads that serve requests.",
                |workers| (1..=256).contains(workers),
            )?,
            max_connections: reader.in_range(
                "HTTP_MAX_CONNECTIONS",
                "10000",
                "a whole number from 1 to 1000000",
                "Connections at once, for each thread; more wait in the system's queue.",
                |connections| (1..=1_000_000).contains(connections),
            )?,
            head_timeout: reader.in_range(
                "HTTP_HEAD_TIMEOUT",
                "10s",
                "a duration from 100ms to 5m",
                "How long the head of a request may take to arrive.",
                |timeout| (Duration::from_millis(100)..=Duration::from_secs(300)).contains(timeout),
            )?,
            // Services must keep a connection for longer than the gateway's pool of 30 s does, or they close
            // what is about to be used.
            keep_alive: reader.in_range(
                "HTTP_KEEP_ALIVE",
                "75s",
                "a duration from 35s to 1h",
                "How long a connection may wait for its next request.",
                |time| (Duration::from_secs(35)..=Duration::from_secs(3600)).contains(time),
            )?,
            request_timeout: reader.in_range(
                "HTTP_REQUEST_TIMEOUT",
                "2m",
                "a duration from 1s to 1h",
                "How long a request may take from its head to the end of its answer before its connection is closed.",
                |time| (Duration::from_secs(1)..=Duration::from_secs(3600)).contains(time),
            )?,
            ..Self::default()
        })
    }
}

impl Default for HttpServerSettings {
    fn default() -> Self {
        Self {
            workers: 2,
            max_connections: 10_000,
            head_timeout: Duration::from_secs(10),
            keep_alive: Duration::from_secs(75),
            request_timeout: Duration::from_secs(120),
            grace: Duration::from_secs(20),
        }
    }
}

/// A port, and whether it speaks TLS.
#[derive(Debug)]
pub struct Listener {
    tcp: TcpListener,
    tls: Option<ServerConfig>,
}

impl Listener {
    /// A port that speaks TLS if there is a configuration for it.
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

/// Takes a port; port 0 takes a free one.
///
/// # Errors
/// The address is in use or not ours.
pub fn bind(address: SocketAddr) -> anyhow::Result<(TcpListener, SocketAddr)> {
    let listener = TcpListener::bind(address)
        .with_context(|| format!("LISTEN_ADDRESS {address} cannot be used"))?;
    listener.set_nonblocking(true)?;
    let bound = listener.local_addr()?;
    Ok((listener, bound))
}

/// Serves an application on a listener until the process shall end; then requests in flight finish.
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
    let server = HttpServer::new(move || app().wrap(from_fn(connection::track)))
        .on_connect(move |io, data| connection::watch(settings, io, data))
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
