//! What keeps slow clients from holding connections for ever.
//!
//! The HTTP library limits the time of the first head of a connection and of waiting for the next one, but
//! neither a later head that trickles nor an answer that nobody reads. So each connection is watched: when
//! its time is over, its socket is shut, and everything that it held goes with it.

use std::any::Any;
use std::net::{Shutdown, TcpStream};
use std::os::fd::AsFd as _;
use std::pin::Pin;
use std::sync::{Arc, Mutex, OnceLock, PoisonError, Weak};
use std::task::{Context, Poll};
use std::time::Duration;

use actix_tls::accept::rustls_0_23::TlsStream;
use actix_web::Error;
use actix_web::body::{BodySize, BoxBody, MessageBody};
use actix_web::dev::{Extensions, ServiceRequest, ServiceResponse};
use actix_web::middleware::Next;
use actix_web::rt;
use actix_web::web::Bytes;
use tokio::task::AbortHandle;
use tokio::time::{Instant, sleep_until};

use crate::HttpServerSettings;

/// One connection of a caller.
#[derive(Debug)]
struct Connection {
    socket: TcpStream,
    limits: Limits,
    state: Mutex<State>,
    watch: OnceLock<AbortHandle>,
}

/// Since when a connection is in its state.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// No head of a request is complete.
    Waiting(Instant),
    /// A request is being answered.
    Answering(Instant),
}

/// How long a connection may be in a state.
#[derive(Debug, Clone, Copy)]
struct Limits {
    waiting: Duration,
    answering: Duration,
}

impl State {
    fn ends(self, limits: Limits) -> Instant {
        match self {
            Self::Waiting(since) => since + limits.waiting,
            Self::Answering(since) => since + limits.answering,
        }
    }
}

/// Begins to watch a connection that has just been made.
pub(crate) fn watch(settings: HttpServerSettings, io: &dyn Any, data: &mut Extensions) {
    let tls = io.downcast_ref::<TlsStream<rt::net::TcpStream>>();
    let plain = io.downcast_ref::<rt::net::TcpStream>();
    let Some(socket) = plain.or_else(|| tls.map(|tls| tls.get_ref().0)) else {
        return;
    };
    // Without a second handle, which only a lack of open files can prevent, it is not watched.
    let Ok(socket) = socket.as_fd().try_clone_to_owned() else {
        return;
    };
    let connection = Arc::new(Connection {
        socket: TcpStream::from(socket),
        limits: Limits {
            waiting: settings.keep_alive + settings.head_timeout,
            answering: settings.request_timeout,
        },
        state: Mutex::new(State::Waiting(Instant::now())),
        watch: OnceLock::new(),
    });
    let watching = rt::spawn(shut_in_time(Arc::downgrade(&connection)));
    // It is new, so nobody has set it.
    let _ = connection.watch.set(watching.abort_handle());
    data.insert(connection);
}

async fn shut_in_time(connection: Weak<Connection>) {
    while let Some(watched) = connection.upgrade() {
        let ends = watched.state().ends(watched.limits);
        if ends <= Instant::now() {
            metrics::counter!("http_slow_connections_closed_total").increment(1);
            // It fails when the caller was quicker.
            let _ = watched.socket.shutdown(Shutdown::Both);
            return;
        }
        drop(watched);
        sleep_until(ends).await;
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

/// A request that is being answered, until the whole answer has been handed over.
#[derive(Debug)]
struct Answering(Arc<Connection>);

impl Answering {
    fn begin(connection: &Arc<Connection>) -> Self {
        connection.set(State::Answering(Instant::now()));
        Self(Arc::clone(connection))
    }
}

impl Drop for Answering {
    fn drop(&mut self) {
        self.0.set(State::Waiting(Instant::now()));
    }
}

/// Middleware, outermost: tells the watch of a connection when a request begins and when its answer ends.
///
/// # Errors
/// The error of an inner middleware.
pub(crate) async fn track<B: MessageBody + 'static>(
    request: ServiceRequest,
    next: Next<B>,
) -> Result<ServiceResponse<Tracked>, Error> {
    let answering = request.conn_data().map(Answering::begin);
    let response = next.call(request).await?;
    Ok(response.map_body(|_, body| Tracked {
        body: BoxBody::new(body),
        _answering: answering,
    }))
}

/// The body of an answer.
#[derive(Debug)]
pub(crate) struct Tracked {
    body: BoxBody,
    _answering: Option<Answering>,
}

impl MessageBody for Tracked {
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
