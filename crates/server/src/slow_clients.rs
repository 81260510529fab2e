//! Closes the connections of clients that send or read too slowly.
//!
//! actix-web limits the time for the first head of a connection and the wait for the next one, but neither
//! a later head that trickles in nor a response that the client does not read. So each connection is
//! watched: when its time limit expires, it is closed, which frees its resources.
//!
//! The gateway limits the time for a body as well, in its `forward/request_body.rs`.

use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};

use actix_http::ConnectionType;
use actix_web::Error;
use actix_web::body::{BodySize, BoxBody, MessageBody};
use actix_web::dev::{ServiceRequest, ServiceResponse};
use actix_web::middleware::Next;
use actix_web::web::Bytes;
use tokio_util::sync::CancellationToken;

use crate::connections::Connection;
use crate::upgrade_offers;

/// A request in progress, until its whole response has been passed to actix-web.
struct RequestInProgress(Rc<Connection>);

impl RequestInProgress {
    fn begin(request: &mut ServiceRequest) -> Option<Self> {
        let connection = Connection::current()?;
        connection.await_response();
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
    let is_aside = connection.is_some_and(|connection| connection.is_aside.get());
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
