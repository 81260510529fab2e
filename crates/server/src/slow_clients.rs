//! Closes the connections of clients that send or read too slowly.
//!
//! actix-web limits the time for the first head of a connection and the wait for the next one, but neither
//! a later head that trickles in nor a response that the client does not read. So each connection is
//! watched: when its time limit expires, it is closed, which frees its resources.
//!
//! The gateway limits the time for a body as well, in its `forward/request_body.rs`.

use std::cell::Cell;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};
use std::time::Duration;

use actix_http::ConnectionType;
use actix_web::Error;
use actix_web::body::{BodySize, BoxBody, MessageBody};
use actix_web::dev::{Extensions, ServiceRequest, ServiceResponse};
use actix_web::middleware::Next;
use actix_web::rt;
use actix_web::web::Bytes;
use tokio::time::{Instant, sleep_until};
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;

use crate::connections::Permit;
use crate::intake::Intake;
use crate::settings::HttpServerSettings;
use crate::upgrade_offers;

struct Connection {
    permit: Rc<Permit>,
    intake: Rc<Intake>,
    settings: HttpServerSettings,
    /// When the head of the next request must be complete, or the response to the current one sent.
    deadline: Cell<Instant>,
}

impl Connection {
    fn await_head(&self) {
        self.allow(self.settings.keep_alive + self.settings.head_timeout);
    }

    fn allow(&self, time: Duration) {
        self.deadline.set(Instant::now() + time);
    }
}

/// Starts to watch the connection that is served.
pub(crate) fn watch_connection(
    settings: HttpServerSettings,
    intake: Rc<Intake>,
    data: &mut Extensions,
) {
    let Some(permit) = Permit::current() else {
        return;
    };
    data.insert(Rc::clone(&permit));
    let connection = Rc::new(Connection {
        permit,
        intake,
        settings,
        deadline: Cell::new(Instant::now()),
    });
    connection.await_head();
    let watch = rt::spawn(close_when_overdue(Rc::clone(&connection)));
    data.insert(AbortOnDropHandle::new(watch));
    data.insert(connection);
}

async fn close_when_overdue(connection: Rc<Connection>) {
    while connection.deadline.get() > Instant::now() {
        sleep_until(connection.deadline.get()).await;
    }
    metrics::counter!("http_slow_connections_closed_total").increment(1);
    connection.permit.closed.cancel();
}

/// A request in progress, until its whole response has been passed to actix-web.
struct RequestInProgress(Rc<Connection>);

impl RequestInProgress {
    fn begin(request: &mut ServiceRequest) -> Option<Self> {
        let connection = Rc::clone(request.conn_data::<Rc<Connection>>()?);
        connection.allow(connection.settings.request_timeout);
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
/// beginning of another protocol.
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
    let is_aside = connection.is_some_and(|connection| connection.permit.is_aside.get());
    if draining.is_cancelled() || is_upgrade || is_aside {
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
