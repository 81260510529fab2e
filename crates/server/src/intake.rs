//! How much of what a client sends may be passed on to actix-http at a time.

use std::cell::{Cell, RefCell};
use std::future::poll_fn;
use std::mem;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

use actix_web::HttpMessage as _;
use actix_web::dev::{Payload, ServiceRequest};
use actix_web::error::PayloadError;
use actix_web::http::header::{CONTENT_LENGTH, TRANSFER_ENCODING};
use actix_web::web::Bytes;
use futures_util::Stream;

use crate::upgrade_offers::is_websocket;

/// Bodies up to this length, in bytes, are passed on before the application wants them: actix-http closes the
/// connection after a response that did not need the rest of the body.
const SHORT: u64 = 16 * 1024;

/// What a connection expects from its client.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Phase {
    #[default]
    Head,
    /// `left` more bytes of a body, or an unknown number, and whether some of them may be passed on.
    Body { left: Option<u64>, wanted: bool },
    /// Nothing before the response has ended.
    Response,
    /// Nothing any more: the connection is being closed, and its client may still send the rest of a body.
    Closing,
}

/// The phase of a connection, which its stream and the application share.
#[derive(Default)]
pub(crate) struct Intake {
    state: RefCell<State>,
    /// How many bytes the last head had.
    pub(crate) head_length: Cell<usize>,
    /// The body that the application has dropped, until the response ends: actix-http would go on to read one in chunks,
    /// however long it is.
    dropped: Cell<Option<Payload>>,
}

#[derive(Debug, Default)]
struct State {
    phase: Phase,
    /// Whether actix-http has asked for bytes in this phase.
    asked: bool,
    /// The task of the connection, if it waits for another phase.
    reader: Option<Waker>,
}

impl Intake {
    /// The phase, as soon as it is one in which bytes may be passed on.
    pub(crate) fn poll_phase(&self, context: &Context<'_>) -> Poll<Phase> {
        let mut state = self.state.borrow_mut();
        match state.phase {
            Phase::Response
            | Phase::Body { left: Some(0), .. }
            | Phase::Body { wanted: false, .. } => {
                state.reader = Some(context.waker().clone());
                Poll::Pending
            }
            phase => {
                state.asked = true;
                Poll::Ready(phase)
            }
        }
    }

    pub(crate) fn pass(&self, count: usize) {
        if let Phase::Body {
            left: Some(left), ..
        } = &mut self.state.borrow_mut().phase
        {
            *left = left.saturating_sub(count as u64);
        }
    }

    /// Waits until what has arrived of a short body was passed on.
    pub(crate) async fn arrived(&self) {
        poll_fn(|_| {
            let state = self.state.borrow();
            match state.phase {
                // `poll_phase` is called before the task of the connection polls the application again.
                Phase::Body {
                    left: Some(1..),
                    wanted: true,
                } if !state.asked => Poll::Pending,
                _ => Poll::Ready(()),
            }
        })
        .await;
    }

    pub(crate) fn begin(self: &Rc<Self>, request: &mut ServiceRequest) {
        if is_websocket(request.headers()) {
            // The body could not be told from what follows it, so the application gets none.
            drop(request.take_payload());
            return self.set(Phase::Response);
        }
        let left = length(request);
        let wanted = left.is_some_and(|left| left <= SHORT);
        if let Payload::None = request.parts().1 {
            return self.set(Phase::Response);
        }
        self.set(Phase::Body { left, wanted });
        if !wanted {
            let inner = request.take_payload();
            let intake = Rc::clone(self);
            request.set_payload(Payload::Stream {
                payload: Box::pin(DemandingPayload { inner, intake }),
            });
        }
    }

    /// Ends a request: its whole response was passed to actix-http.
    pub(crate) fn end(&self) {
        self.dropped.take();
        let is_unread = self.is_unread();
        self.set(if is_unread {
            Phase::Closing
        } else {
            Phase::Head
        });
    }

    /// Whether there is more of the body than the application has read, so that the connection must close.
    pub(crate) fn is_unread(&self) -> bool {
        matches!(
            self.phase(),
            Phase::Body {
                left: None | Some(1..),
                ..
            }
        )
    }

    fn want(&self, wanted: bool) {
        if let Phase::Body { left, .. } = self.phase() {
            self.set(Phase::Body { left, wanted });
        }
    }

    fn phase(&self) -> Phase {
        self.state.borrow().phase
    }

    pub(crate) fn set(&self, phase: Phase) {
        let reader = {
            let mut state = self.state.borrow_mut();
            state.phase = phase;
            state.asked = false;
            state.reader.take()
        };
        if let Some(reader) = reader {
            reader.wake();
        }
    }
}

fn length(request: &ServiceRequest) -> Option<u64> {
    let headers = request.headers();
    if headers.contains_key(TRANSFER_ENCODING) {
        return None;
    }
    let length = headers.get(CONTENT_LENGTH)?.to_str().ok()?;
    length.trim().parse().ok()
}

/// A body whose next bytes are passed on only when they are read.
struct DemandingPayload {
    inner: Payload,
    intake: Rc<Intake>,
}

impl Stream for DemandingPayload {
    type Item = Result<Bytes, PayloadError>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let item = Pin::new(&mut self.inner).poll_next(context);
        match item {
            Poll::Ready(None) => self.intake.set(Phase::Response),
            _ => self.intake.want(item.is_pending()),
        }
        item
    }
}

impl Drop for DemandingPayload {
    fn drop(&mut self) {
        self.intake.want(false);
        let inner = mem::replace(&mut self.inner, Payload::None);
        self.intake.dropped.set(Some(inner));
    }
}
