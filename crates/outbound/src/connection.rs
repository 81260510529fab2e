//! Connections that end with their request, unless it was written and its response was read.

use std::io;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};
use std::task::{Context, Poll};

use bytes::Bytes;
use futures_util::task::AtomicWaker;
use http::{Extensions, Request};
use http_body_util::Full;
use hyper::rt::{Read, ReadBufCursor, Write};
use hyper_util::client::legacy::connect::{
    CaptureConnection, Connected, Connection, capture_connection,
};

/// What a connection and its current request share.
#[derive(Debug, Default)]
struct State {
    is_closed: AtomicBool,
    writer: AtomicWaker,
}

/// A stream that its request can close.
///
/// Without that, hyper writes a request to its end though nothing waits for the response any more, or although it has come. A
/// receiver that reads nothing would leave a connection and a body behind with each call.
#[derive(Debug)]
pub(crate) struct ClosableStream<S> {
    stream: S,
    state: Arc<State>,
}

impl<S> ClosableStream<S> {
    pub(crate) fn new(stream: S) -> Self {
        let state = Arc::default();
        Self { stream, state }
    }

    /// Registers the task that writes before it looks whether to go on, so that it misses no end of its request.
    fn check(&self, context: &Context<'_>) -> io::Result<()> {
        self.state.writer.register(context.waker());
        if self.state.is_closed.load(Ordering::SeqCst) {
            return Err(io::ErrorKind::ConnectionAborted.into());
        }
        Ok(())
    }
}

impl<S: Read + Unpin> Read for ClosableStream<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: ReadBufCursor<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl<S: Write + Unpin> Write for ClosableStream<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.check(context)?;
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffers: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.check(context)?;
        Pin::new(&mut self.stream).poll_write_vectored(context, buffers)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.check(context)?;
        Pin::new(&mut self.stream).poll_flush(context)
    }

    /// Waits for nothing: what is closed may be dropped.
    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match Pin::new(&mut self.stream).poll_shutdown(context) {
            Poll::Pending => Poll::Ready(Ok(())),
            closed => closed,
        }
    }
}

impl<S: Connection> Connection for ClosableStream<S> {
    fn connected(&self) -> Connected {
        self.stream.connected().extra(Arc::clone(&self.state))
    }
}

/// The content of a request. Hyper drops it once it is written, and uses the connection for another request only afterwards.
struct Content {
    bytes: Bytes,
    _held: Arc<()>,
}

impl AsRef<[u8]> for Content {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

/// The connection of a request, which is closed when this is dropped, unless it can have another request.
#[derive(Debug)]
pub(crate) struct RequestConnection {
    captured: CaptureConnection,
    /// Whether something is not written yet.
    unwritten: Weak<()>,
    has_response: bool,
}

impl RequestConnection {
    /// A request that is sent afterwards, and its connection.
    pub(crate) fn of(request: Request<Bytes>) -> (Self, Request<Full<Bytes>>) {
        let held = Arc::new(());
        let unwritten = Arc::downgrade(&held);
        let content = |bytes| Bytes::from_owner(Content { bytes, _held: held });
        let mut request = request.map(|bytes| Full::new(content(bytes)));
        let connection = Self {
            captured: capture_connection(&mut request),
            unwritten,
            has_response: false,
        };
        (connection, request)
    }

    pub(crate) fn respond(&mut self) {
        self.has_response = true;
    }
}

impl Drop for RequestConnection {
    fn drop(&mut self) {
        if self.has_response && self.unwritten.strong_count() == 0 {
            return;
        }
        let mut extras = Extensions::new();
        if let Some(connected) = self.captured.connection_metadata().as_ref() {
            connected.get_extras(&mut extras);
        }
        if let Some(state) = extras.get::<Arc<State>>() {
            state.is_closed.store(true, Ordering::SeqCst);
            state.writer.wake();
        }
    }
}
