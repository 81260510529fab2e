//! Closes the connections of clients that send or read too slowly.
//!
//! actix-web limits the time for the first head of a connection and the wait for the next one, but neither
//! a later head that trickles in nor a response that the client does not read. So each connection is
//! watched: when its time limit expires, its socket is shut down, which frees its resources.
//!
//! The gateway limits the time for a body as well, in its `forward/request_body.rs`.

use std::net::{Shutdown, TcpStream};
use std::os::fd::AsFd as _;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::{Arc, Mutex, OnceLock, PoisonError, Weak};
use std::task::{Context, Poll};
use std::time::Duration;

use actix_web::Error;
use actix_web::body::{BodySize, BoxBody, MessageBody};
use actix_web::dev::{Extensions, ServiceRequest, ServiceResponse};
use actix_web::middleware::Next;
use actix_web::rt;
use actix_web::web::Bytes;
use tokio::task::AbortHandle;
use tokio::time::{Instant, sleep_until};

use crate::intake::Intake;
use crate::settings::HttpServerSettings;

/// One connection of a client.
#[derive(Debug)]
struct Connection {
    socket: TcpStream,
    limits: Limits,
    state: Mutex<State>,
    watch: OnceLock<AbortHandle>,
}

/// The state of a connection and since when it is in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// The head of the next request is not complete.
    AwaitingHead(Instant),
    /// A request is handled, or its response is sent.
    HandlingRequest(Instant),
}

/// The time limit of each state.
#[derive(Debug, Clone, Copy)]
struct Limits {
    head: Duration,
    request: Duration,
}

impl State {
    fn deadline(self, limits: Limits) -> Instant {
        match self {
            Self::AwaitingHead(since) => since + limits.head,
            Self::HandlingRequest(since) => since + limits.request,
        }
    }
}

/// Starts to watch a new connection.
pub(crate) fn watch_connection(
    settings: HttpServerSettings,
    socket: &rt::net::TcpStream,
    data: &mut Extensions,
) {
    // This fails only when the process is out of file descriptors. Then the connection is not watched.
    let Ok(socket) = socket.as_fd().try_clone_to_owned() else {
        return;
    };
    let connection = Arc::new(Connection {
        socket: TcpStream::from(socket),
        limits: Limits {
            head: settings.keep_alive + settings.head_timeout,
            request: settings.request_timeout,
        },
        state: Mutex::new(State::AwaitingHead(Instant::now())),
        watch: OnceLock::new(),
    });
    let watch = rt::spawn(close_when_overdue(Arc::downgrade(&connection)));
    let _ = connection.watch.set(watch.abort_handle());
    data.insert(connection);
}

async fn close_when_overdue(connection: Weak<Connection>) {
    while let Some(watched) = connection.upgrade() {
        let deadline = watched.state().deadline(watched.limits);
        if deadline <= Instant::now() {
            metrics::counter!("http_slow_connections_closed_total").increment(1);
            // This fails if the client has already closed the connection.
            let _ = watched.socket.shutdown(Shutdown::Both);
            return;
        }
        drop(watched);
        sleep_until(deadline).await;
    }
}

impl Connection {
    fn state(&self) -> State {
        *self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn set(&self, state: State) {
        *self.state.lock().unwrap_or_else(PoisonError::into_inner) = state;
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        if let Some(watch) = self.watch.get() {
            watch.abort();
        }
    }
}

/// A request in progress, until its whole response has been passed to actix-web.
#[derive(Debug)]
struct RequestInProgress {
    connection: Option<Arc<Connection>>,
    intake: Option<Rc<Intake>>,
}

impl RequestInProgress {
    fn begin(request: &mut ServiceRequest) -> Self {
        let connection: Option<Arc<Connection>> = request.conn_data().cloned();
        let intake: Option<Rc<Intake>> = request.conn_data().cloned();
        if let Some(connection) = &connection {
            connection.set(State::HandlingRequest(Instant::now()));
        }
        if let Some(intake) = &intake {
            intake.begin(request);
        }
        Self { connection, intake }
    }
}

impl Drop for RequestInProgress {
    fn drop(&mut self) {
        if let Some(connection) = &self.connection {
            connection.set(State::AwaitingHead(Instant::now()));
        }
        if let Some(intake) = &self.intake {
            intake.end();
        }
    }
}

/// Outermost middleware: records when a request of a connection starts and when its response ends.
///
/// # Errors
/// The error of an inner middleware.
pub(crate) async fn track_requests<B: MessageBody + 'static>(
    mut request: ServiceRequest,
    next: Next<B>,
) -> Result<ServiceResponse<TrackedBody>, Error> {
    let in_progress = RequestInProgress::begin(&mut request);
    if let Some(intake) = &in_progress.intake {
        // actix-http closes the connection after a response that did not need the rest of the body.
        intake.arrived().await;
    }
    let response = next.call(request).await?;
    Ok(response.map_body(|_, body| TrackedBody {
        body: BoxBody::new(body),
        _in_progress: in_progress,
    }))
}

/// The body of a response in progress.
#[derive(Debug)]
pub(crate) struct TrackedBody {
    body: BoxBody,
    _in_progress: RequestInProgress,
}

impl MessageBody for TrackedBody {
    type Error = <BoxBody as MessageBody>::Error;

    fn size(&self) -> BodySize {
        self.body.size()
    }

    fn poll_next(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Bytes, Self::Error>>> {
        Pin::new(&mut self.body).poll_next(context)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use actix_web::web::get;
    use actix_web::{App, HttpRequest};
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::net::TcpStream;

    use super::Connection;
    use crate::{HttpServerSettings, Running, bind, serve};

    async fn has_nodelay(request: HttpRequest) -> String {
        let connection: &Arc<Connection> = request.conn_data().unwrap();
        format!("nodelay: {}", connection.socket.nodelay().unwrap())
    }

    #[tokio::test]
    async fn the_end_of_a_response_does_not_wait_for_acknowledgements() {
        let (running, settings) = (Running::new(), HttpServerSettings::single_threaded());
        let (listener, address) = bind(([127, 0, 0, 1], 0).into()).unwrap();
        let app = || App::new().route("/", get().to(has_nodelay));
        serve(&running, listener, settings, app).unwrap();
        let mut socket = TcpStream::connect(address).await.unwrap();
        let request = b"GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n";
        socket.write_all(request).await.unwrap();
        let mut response = String::new();
        socket.read_to_string(&mut response).await.unwrap();
        assert!(response.ends_with("nodelay: true"), "{response}");
    }
}
