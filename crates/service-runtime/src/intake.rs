//! How much of what a client sends may be passed on to actix-http at a time.

use std::cell::RefCell;
use std::future::poll_fn;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

use actix_web::HttpMessage as _;
use actix_web::dev::{Payload, ServiceRequest};
use actix_web::error::PayloadError;
use actix_web::http::header::{CONTENT_LENGTH, TRANSFER_ENCODING};
use actix_web::web::Bytes;
use futures_util::Stream;

/// What a connection expects from its client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Phase {
    /// The head of a request.
    Head,
    /// This many more bytes of a body.
    SizedBody(u64),
    /// A body of unknown length, and whether the application waits for more of it.
    StreamedBody { wanted: bool },
    /// Nothing before the response has ended.
    Response,
}

/// The phase of a connection, which its stream and the application share.
#[derive(Debug)]
pub(crate) struct Intake {
    state: RefCell<State>,
}

#[derive(Debug)]
struct State {
    phase: Phase,
    /// Whether actix-http has asked for bytes in this phase.
    asked: bool,
    /// The task of the connection, if it waits for another phase.
    reader: Option<Waker>,
}

impl Intake {
    pub(crate) fn new() -> Rc<Self> {
        let state = State {
            phase: Phase::Head,
            asked: false,
            reader: None,
        };
        Rc::new(Self {
            state: RefCell::new(state),
        })
    }

    /// The phase, as soon as it is one in which bytes may be passed on.
    pub(crate) fn poll_phase(&self, context: &Context<'_>) -> Poll<Phase> {
        let mut state = self.state.borrow_mut();
        match state.phase {
            Phase::SizedBody(0) | Phase::Response | Phase::StreamedBody { wanted: false } => {
                state.reader = Some(context.waker().clone());
                Poll::Pending
            }
            phase => {
                state.asked = true;
                Poll::Ready(phase)
            }
        }
    }

    /// Records that `count` bytes of a body were passed on.
    pub(crate) fn pass(&self, count: usize) {
        if let Phase::SizedBody(left) = &mut self.state.borrow_mut().phase {
            *left = left.saturating_sub(count as u64);
        }
    }

    /// Waits until what has arrived of a body of known length was passed on.
    pub(crate) async fn arrived(&self) {
        poll_fn(|_| {
            let state = self.state.borrow();
            match state.phase {
                // `poll_phase` is called before the task of the connection polls the application again.
                Phase::SizedBody(1..) if !state.asked => Poll::Pending,
                _ => Poll::Ready(()),
            }
        })
        .await;
    }

    /// Starts a request.
    pub(crate) fn begin(self: &Rc<Self>, request: &mut ServiceRequest) {
        let phase = match (request.parts().1, length(request)) {
            (Payload::None, _) => Phase::Response,
            (_, Some(length)) => Phase::SizedBody(length),
            (_, None) => Phase::StreamedBody { wanted: false },
        };
        self.set(phase);
        if matches!(phase, Phase::StreamedBody { .. }) {
            let inner = request.take_payload();
            let intake = Rc::clone(self);
            request.set_payload(Payload::Stream {
                payload: Box::pin(DemandingPayload { inner, intake }),
            });
        }
    }

    /// Ends a request: its whole response was passed to actix-http.
    pub(crate) fn end(&self) {
        self.set(Phase::Head);
    }

    fn want(&self, wanted: bool) {
        if matches!(self.state.borrow().phase, Phase::StreamedBody { .. }) {
            self.set(Phase::StreamedBody { wanted });
        }
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

/// The length of a body that has one.
fn length(request: &ServiceRequest) -> Option<u64> {
    let headers = request.headers();
    if headers.contains_key(TRANSFER_ENCODING) {
        return None;
    }
    headers
        .get(CONTENT_LENGTH)?
        .to_str()
        .ok()?
        .trim()
        .parse()
        .ok()
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
        self.intake.want(item.is_pending());
        item
    }
}

impl Drop for DemandingPayload {
    fn drop(&mut self) {
        self.intake.want(false);
    }
}
