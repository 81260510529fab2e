//! A connection that is served, and closed when its client sends or reads too slowly.
//!
//! actix-web limits the time for the first head of a connection and the wait for the next one, but neither
//! a later head that trickles in nor a response that the client does not read. So the task of each connection
//! watches a deadline: when it passes, the connection is closed, which frees its resources.
//!
//! The gateway limits the time for a body as well, in its `forward/request_body.rs`.

use std::any::Any;
use std::cell::{Cell, RefCell};
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};

use actix_http::ConnectionType;
use actix_web::Error;
use actix_web::body::{BodySize, BoxBody, MessageBody};
use actix_web::dev::{ServiceRequest, ServiceResponse};
use actix_web::middleware::Next;
use actix_web::web::Bytes;
use tokio::time::{Instant, sleep_until};
use tokio_util::sync::CancellationToken;

use crate::admission::Permit;
use crate::intake::Intake;
use crate::settings::HttpServerSettings;
use crate::upgrade_offers;

tokio::task_local! {
    static CURRENT: Rc<Connection>;
}

pub(crate) struct Connection {
    permit: Permit,
    settings: HttpServerSettings,
    is_tls: bool,
    pub(crate) intake: Rc<Intake>,
    /// When the head of the next request must be complete, or the response to the current one sent.
    deadline: Cell<Instant>,
    /// Whether the connection no longer counts, so that its response must close it.
    is_aside: Cell<bool>,
    /// Dropped when the connection closes.
    kept: RefCell<Option<Box<dyn Any>>>,
}

impl Connection {
    pub(crate) fn current() -> Option<Rc<Self>> {
        CURRENT.try_with(Rc::clone).ok()
    }

    pub(crate) fn await_head(&self) {
        let settings = self.settings;
        let time = if self.is_aside.get() {
            // No other request follows. The client only has to read what is left of its response.
            settings.head_timeout
        } else {
            settings.keep_alive + settings.head_timeout
        };
        self.deadline.set(Instant::now() + time);
    }

    /// Waits until the connection is due, and serves it until its client is too slow.
    async fn serve<E>(&self, serving: impl Future<Output = Result<(), E>>) -> Result<(), E> {
        if let Some(start) = self.permit.start
            && start > Instant::now()
        {
            sleep_until(start).await;
        }
        self.await_head();
        tokio::select! {
            biased;
            served = serving => served,
            () = self.overdue() => Ok(()),
        }
    }

    async fn overdue(&self) {
        while self.deadline.get() > Instant::now() {
            // The deadline may move forward meanwhile, when a response ends.
            let soon = Instant::now() + self.settings.head_timeout;
            sleep_until(self.deadline.get().min(soon)).await;
        }
        metrics::counter!("http_slow_connections_closed_total").increment(1);
    }
}

pub(crate) async fn serve<E>(
    permit: Permit,
    settings: HttpServerSettings,
    is_tls: bool,
    serving: impl Future<Output = Result<(), E>>,
) -> Result<(), E> {
    let connection = Rc::new(Connection {
        permit,
        settings,
        is_tls,
        intake: Rc::default(),
        deadline: Cell::new(Instant::now()),
        is_aside: Cell::new(false),
        kept: RefCell::default(),
    });
    let serving = CURRENT.scope(Rc::clone(&connection), connection.serve(serving));
    let served = connection.permit.closed.run_until_cancelled(serving).await;
    served.unwrap_or(Ok(()))
}

/// Whether the request that this code handles came over TLS.
pub fn is_tls() -> bool {
    Connection::current().is_some_and(|connection| connection.is_tls)
}

/// The longest head of a request whose connection is set aside, in bytes: its memory is held until the response.
const MAX_HEAD_ASIDE: usize = 8 * 1024;

/// Sets the connection of the request that this code handles aside: it no longer counts among those that client networks
/// share, and its response closes it. For requests that wait long, of which there must be a limit of their own: see
/// [`keep_until_closed`]. `false`, and nothing changes, if the request has a long head.
pub fn set_aside() -> bool {
    let Some(connection) = Connection::current() else {
        return true;
    };
    if connection.intake.head_length.get() > MAX_HEAD_ASIDE {
        return false;
    }
    // One of a trusted proxy never counts, and is closed all the same: it would hold for long what is kept until then.
    connection.permit.entry.take();
    connection.is_aside.set(true);
    true
}

/// Keeps a value until the connection of the request that this code handles is closed, such as what limits connections that are
/// set aside: a client that does not read its response still uses memory.
pub fn keep_until_closed(value: impl Any) {
    if let Some(connection) = Connection::current() {
        connection.kept.replace(Some(Box::new(value)));
    }
}

/// A request in progress, until its whole response has been passed to actix-web.
struct RequestInProgress(Rc<Connection>);

impl RequestInProgress {
    fn begin(request: &mut ServiceRequest) -> Option<Self> {
        let connection = Connection::current()?;
        let time = connection.settings.request_timeout;
        connection.deadline.set(Instant::now() + time);
        connection.intake.begin(request);
        Some(Self(connection))
    }
}

impl Drop for RequestInProgress {
    fn drop(&mut self) {
        self.0.await_head();
        self.0.intake.end();
    }
}

/// Outermost middleware: records when a request of a connection starts and when its response ends.
///
/// Once `draining` is cancelled, each response closes its connection. A client that is told so does not send a request
/// at the moment at which an idle connection is closed. So does the response to a request that actix-http takes for the
/// beginning of another protocol, and to one whose body was not read to its end.
pub(crate) async fn track_request<B: MessageBody + 'static>(
    draining: CancellationToken,
    mut request: ServiceRequest,
    next: Next<B>,
) -> Result<ServiceResponse<TrackedBody>, Error> {
    let is_upgrade = upgrade_offers::is_left(request.head());
    let in_progress = RequestInProgress::begin(&mut request);
    if let Some(RequestInProgress(connection)) = &in_progress {
        // actix-http closes the connection after a response that did not need the rest of the body.
        connection.intake.arrived().await;
    }
    let mut response = next.call(request).await?;
    let connection = in_progress.as_ref().map(|request| &request.0);
    let must_close =
        |connection: &Rc<Connection>| connection.is_aside.get() || connection.intake.is_unread();
    if draining.is_cancelled() || is_upgrade || connection.is_some_and(must_close) {
        let head = response.response_mut().head_mut();
        head.set_connection_type(ConnectionType::Close);
    }
    Ok(response.map_body(|_, body| TrackedBody {
        body: BoxBody::new(body),
        _in_progress: in_progress,
    }))
}

pub(crate) struct TrackedBody {
    body: BoxBody,
    _in_progress: Option<RequestInProgress>,
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
