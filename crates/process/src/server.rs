use std::net::{SocketAddr, TcpListener};
use std::time::Duration;

use actix_web::HttpServer;
use actix_web::body::MessageBody;
use actix_web::dev::{ServiceFactory, ServiceRequest, ServiceResponse};
use actix_web::{App, Error};
use anyhow::Context as _;
use settings::{Reader, Settings};

use crate::Running;

/// A request's head must arrive within this time.
const HEAD_TIMEOUT: Duration = Duration::from_secs(10);
/// Longer than any idle connection of a client pool of ours, so that we never close what is in use.
const KEEP_ALIVE: Duration = Duration::from_secs(75);

/// How a process serves HTTP.
#[derive(Debug, Clone, Copy)]
pub struct HttpServerSettings {
    /// Threads that serve requests.
    pub workers: usize,
    /// Connections at once, for each thread.
    pub max_connections: usize,
    /// How long requests in flight may take when the process stops.
    pub grace: Duration,
}

impl Settings for HttpServerSettings {
    fn read(reader: &mut Reader) -> Result<Self, settings::Error> {
        Ok(Self {
            workers: reader.within(
                "HTTP_WORKERS",
                "2",
                "a whole number from 1 to 256",
                "Threads that serve requests.",
                |workers| (1..=256).contains(workers),
            )?,
            max_connections: reader.within(
                "HTTP_MAX_CONNECTIONS",
                "10000",
                "a whole number from 1 to 1000000",
                "Connections at once, for each thread; more wait in the system's queue.",
                |connections| (1..=1_000_000).contains(connections),
            )?,
            grace: Duration::from_secs(20),
        })
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
    listener: TcpListener,
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
    let server = HttpServer::new(app)
        .workers(settings.workers)
        .max_connections(settings.max_connections)
        .client_request_timeout(HEAD_TIMEOUT)
        .keep_alive(KEEP_ALIVE)
        .shutdown_timeout(settings.grace.as_secs())
        .disable_signals()
        .listen(listener)?
        .run();
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
