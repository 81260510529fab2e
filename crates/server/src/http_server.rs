use std::io;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use actix_http::error::DispatchError;
use actix_http::{HttpServiceBuilder, Protocol};
use actix_server::{Server, ServerBuilder};
use actix_service::{
    IntoServiceFactory as _, Service as _, ServiceFactory, ServiceFactoryExt as _,
    apply_fn_factory, fn_service, map_config,
};
use actix_web::body::MessageBody;
use actix_web::dev::{AppConfig, ServiceRequest, ServiceResponse};
use actix_web::middleware::from_fn;
use actix_web::rt::net::TcpStream;
use actix_web::{App, Error};
use anyhow::Context as _;
use app_config::Networks;
use rustls::ServerConfig;
use tokio::time::timeout;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;
use tokio_util::either::Either;
use tokio_util::sync::CancellationToken;

use crate::admission::{Connections, Permit};
use crate::connection::{self, Connection, track_request};
use crate::open_files;
use crate::paced_stream::PacedStream;
use crate::running::Running;
use crate::settings::HttpServerSettings;

/// How long a connection that is being closed may still send, so that its client can read the response.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(1);

/// How long requests in flight may take when the server stops. It is longer than any `SHUTDOWN_GRACE`, by which the process
/// ends, and says so if requests were in flight.
const UNLIMITED_STOP: Duration = Duration::from_secs(24 * 60 * 60);

/// How many blocking calls of its requests each thread of the server may make at a time. The pool of connections limits them,
/// so this is no limit of its own, as a part of the number of processors would be. Threads start when they are needed.
const BLOCKING_THREADS: usize = 512;

type Socket = Either<TcpStream, Box<TlsStream<TcpStream>>>;

/// A listening port.
#[derive(Debug)]
pub struct Listener {
    /// Its socket.
    pub tcp: TcpListener,
    /// The configuration of TLS, if the port serves it.
    pub tls: Option<ServerConfig>,
    /// If it is set, client networks share the connections (`admission.rs`). Peers in these networks, such as proxies that connect
    /// for many clients, are not counted.
    pub unlimited: Option<Networks>,
    /// How many connections may be set aside ([`set_aside`](crate::set_aside)) at the same time.
    pub aside: usize,
    /// Whether the response to a request that is not HTTP, has a head that is too long, or stalls is a problem. Then
    /// every response of the application must carry `X-Request-Id`, as
    /// [`request_context`](http_kit::request_context) ensures.
    pub explains_refusals: bool,
}

impl From<TcpListener> for Listener {
    fn from(tcp: TcpListener) -> Self {
        Self {
            tcp,
            tls: None,
            unlimited: None,
            aside: 0,
            explains_refusals: false,
        }
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
    let listener = listener.into();
    let total = open_files::limit_connections(settings.workers * settings.max_connections);
    let unlimited = listener.unlimited;
    let connections = unlimited.map(|peers| Connections::new(shared(total), peers));
    let tls = listener.tls.map(tls_acceptor);
    let is_tls = tls.is_some();
    let builder = builder(settings, total + listener.aside);
    let stopping = builder.graceful_shutdown_signal();
    let draining = running.draining();
    let builder = builder.listen("http", listener.tcp, move || {
        let (stopping, draining) = (stopping.clone(), draining.clone());
        let app = app().wrap(from_fn(move |request, next| {
            track_request(draining.clone(), request, next)
        }));
        let requests = app
            .into_factory()
            .map_err(|error: Error| error.error_response());
        let http = HttpServiceBuilder::default()
            .keep_alive(settings.keep_alive)
            .client_request_timeout(settings.head_timeout)
            .client_disconnect_timeout(CLOSE_TIMEOUT)
            .graceful_shutdown_signal(move || {
                let stopping = stopping.clone();
                async move { stopping.notified().await }
            })
            .finish(map_config(requests, |()| AppConfig::default()));
        let (tls, explains) = (tls.clone(), listener.explains_refusals);
        let accept =
            fn_service(move |socket| accept(socket, tls.clone(), settings.head_timeout, explains));
        limited(connections.clone(), settings, is_tls, accept.and_then(http))
    })?;
    run(running, builder.run());
    Ok(())
}

/// A service that serves only connections that get a permit, and closes others before TLS and HTTP.
fn limited<F: ServiceFactory<TcpStream, Config = (), Response = (), InitError = ()>>(
    connections: Option<Arc<Connections>>,
    settings: HttpServerSettings,
    is_tls: bool,
    service: F,
) -> impl ServiceFactory<TcpStream, Config = (), Response = (), Error = F::Error, InitError = ()> {
    apply_fn_factory(service, move |socket: TcpStream, service: &F::Service| {
        // Only a socket that has just been closed has no address.
        let peer = socket.peer_addr().map(|peer| peer.ip());
        let peer = peer.unwrap_or(Ipv4Addr::UNSPECIFIED.into());
        let permit = match &connections {
            Some(connections) => connections.admit(peer),
            None => Some(Permit::default()),
        };
        // In a box, because each future around it would have room for it twice: 17 KB for each connection.
        let serving = permit.map(|permit| (Box::pin(service.call(socket)), permit));
        async move {
            match serving {
                Some((serving, permit)) => {
                    connection::serve(permit, settings, is_tls, serving).await
                }
                None => Ok(()),
            }
        }
    })
}

/// How many connections client networks share. A worker accepts no more than its part of the total, and a connection must
/// be accepted to displace another one.
fn shared(total: usize) -> usize {
    (total - (total / 16).max(1)).max(1)
}

fn builder(settings: HttpServerSettings, max_connections: usize) -> ServerBuilder {
    ServerBuilder::default()
        .workers(settings.workers)
        .worker_max_blocking_threads(BLOCKING_THREADS)
        .max_concurrent_connections(max_connections.div_ceil(settings.workers))
        .shutdown_timeout(UNLIMITED_STOP.as_secs())
        .disable_signals()
}

fn run(running: &Running, server: Server) {
    let handle = server.handle();
    let (shutdown, failed) = (running.shutdown(), running.shutdown());
    running.spawn(async move {
        shutdown.cancelled().await;
        handle.stop(true).await;
    });
    running.spawn(stop_if_failed(server, failed));
}

/// Waits for the end of a server. A process whose server has failed would go on without its port and say that it is ready.
async fn stop_if_failed(server: impl Future<Output = io::Result<()>>, stop: CancellationToken) {
    if let Err(error) = server.await {
        tracing::error!(%error, "the HTTP server failed; the process stops");
        stop.cancel();
    }
}

fn tls_acceptor(mut config: ServerConfig) -> TlsAcceptor {
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    TlsAcceptor::from(Arc::new(config))
}

/// Prepares an accepted socket for actix-http, with TLS if there is an acceptor for it.
async fn accept(
    socket: TcpStream,
    tls: Option<TlsAcceptor>,
    handshake_timeout: Duration,
    explains: bool,
) -> Result<(PacedStream<Socket>, Protocol, Option<SocketAddr>), DispatchError> {
    let peer = prepare(&socket);
    let socket = match tls {
        None => Either::Left(socket),
        Some(tls) => {
            let accepted = timeout(handshake_timeout, tls.accept(socket)).await;
            Either::Right(Box::new(accepted.map_err(io::Error::from)??))
        }
    };
    let mut stream = PacedStream::new(socket, explains);
    if let Some(connection) = Connection::current() {
        connection.await_head();
        stream.intake = Rc::clone(&connection.intake);
    }
    Ok((stream, Protocol::Http1, peer))
}

/// Sets the options of a client's socket, and returns its address. Both fail if it has just been closed.
fn prepare(socket: &TcpStream) -> Option<SocketAddr> {
    // Otherwise the last part of a response may wait for the client's delayed acknowledgement.
    let _ = socket.set_nodelay(true);
    socket.peer_addr().ok()
}

#[cfg(test)]
mod tests {
    use std::future::ready;
    use std::io;

    use actix_web::rt::net::TcpStream;
    use tokio::net::TcpListener;
    use tokio_util::sync::CancellationToken;

    use super::{prepare, stop_if_failed};

    #[tokio::test]
    async fn a_server_that_fails_stops_its_process() {
        for (ended, stops) in [(Ok(()), false), (Err(io::Error::other("no port")), true)] {
            let stop = CancellationToken::new();
            stop_if_failed(ready(ended), stop.clone()).await;
            assert_eq!(stop.is_cancelled(), stops);
        }
    }

    #[tokio::test]
    async fn the_end_of_a_response_does_not_wait_for_acknowledgements() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let client = TcpStream::connect(listener.local_addr().unwrap())
            .await
            .unwrap();
        let (socket, _) = listener.accept().await.unwrap();
        assert!(!socket.nodelay().unwrap());
        assert_eq!(prepare(&socket), client.local_addr().ok());
        assert!(socket.nodelay().unwrap());
    }
}
