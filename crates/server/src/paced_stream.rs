//! Passes on to actix-http what a client sends, one request at a time.
//!
//! actix-http parses all that it has read: thousands of requests or chunks that arrive at once would each take
//! memory, several KB for a request of 20 bytes, although their responses are never read. It also parses the head of
//! a request again with each part that arrives. So the stream passes on a head only up to its end or in parts that
//! double, and the next request only when the response to the last one has ended and was taken by the socket.
//! An offer to upgrade is removed from a head, because no protocol is upgraded to: [`UpgradeOffers`].
//!
//! What is written passes through as it is, except for the responses that actix-http sends by itself: [`refuse`].

use std::io;
use std::mem::MaybeUninit;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, ready};

use actix_web::web::BytesMut;
use futures_util::future::LocalBoxFuture;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use crate::blank_line::BlankLine;
use crate::intake::{Intake, Phase};
use crate::refusal::{bare_response, refuse, replacement};
use crate::upgrade_offers::UpgradeOffers;

/// The most that is received at once, in bytes.
const MAX_RECEIVED: usize = 8 * 1024;
/// The most that is received in a row of what is not wanted any more, in bytes.
const MAX_DISCARDED: usize = 8 * MAX_RECEIVED;
/// The most of a body of unknown length that is passed on at once, in bytes: a chunk of one byte takes 32 in memory.
const MAX_STREAMED: usize = 2 * 1024;

pub(crate) struct PacedStream<T> {
    /// `None` once a refusal has it, after which nothing more of what actix-http writes is sent.
    io: Option<T>,
    pub(crate) intake: Rc<Intake>,
    /// Bytes that were received and not passed on.
    received: BytesMut,
    blank_line: BlankLine,
    upgrade_offers: UpgradeOffers,
    /// How much of the current head was passed on.
    passed: usize,
    /// Whether actix-http must parse what was passed on before it gets more.
    parsing: bool,
    /// Whether the client does not read what is sent to it.
    blocked: bool,
    has_sent: bool,
    /// Whether problems replace the responses that actix-http sends by itself.
    explains: bool,
    refusal: Option<LocalBoxFuture<'static, io::Result<()>>>,
}

impl<T> PacedStream<T> {
    /// A connection that makes problems if it `explains`, so every response of the application must carry
    /// `X-Request-Id`. In any case it is closed without a response if its client has sent nothing.
    pub(crate) fn new(io: T, explains: bool) -> Self {
        Self {
            io: Some(io),
            intake: Rc::default(),
            received: BytesMut::new(),
            blank_line: BlankLine::default(),
            upgrade_offers: UpgradeOffers::default(),
            passed: 0,
            parsing: false,
            blocked: false,
            has_sent: false,
            explains,
            refusal: None,
        }
    }

    /// How many of the received bytes may be passed on, or `None` if more must be received first.
    fn passable(&mut self, phase: Phase) -> Option<usize> {
        let received = self.received.len();
        if received == 0 {
            return None;
        }
        match phase {
            Phase::Body {
                left: Some(left), ..
            } => Some(usize::try_from(left).map_or(received, |left| left.min(received))),
            Phase::Body { left: None, .. } => {
                self.blank_line.search(&self.received);
                Some(self.blank_line.end.unwrap_or(received).min(MAX_STREAMED))
            }
            Phase::Head | Phase::Response | Phase::Closing => {
                self.blank_line.search(&self.received);
                if received < self.passed.min(MAX_RECEIVED) && self.blank_line.end.is_none() {
                    return None;
                }
                let count = self.blank_line.end.unwrap_or(received);
                let head = self.received.get_mut(..count).unwrap_or_default();
                Some(self.upgrade_offers.remove(head)).filter(|count| *count > 0)
            }
        }
    }

    fn pass(&mut self, phase: Phase, count: usize, buffer: &mut ReadBuf<'_>) {
        let count = count.min(buffer.remaining());
        let passed = self.received.split_to(count);
        buffer.put_slice(&passed);
        if self.received.is_empty() {
            // An idle connection keeps no buffer.
            self.received = BytesMut::new();
        }
        if let Phase::Body { left: Some(_), .. } = phase {
            self.intake.pass(count);
            return;
        }
        self.passed += count;
        let ended = self.blank_line.advance(count);
        if phase == Phase::Head {
            self.upgrade_offers.advance(&passed);
            self.intake.head_length.set(self.passed);
        }
        if ended {
            self.passed = 0;
        }
        self.parsing = ended || matches!(phase, Phase::Body { .. });
    }
}

impl<T: AsyncRead + Unpin> PacedStream<T> {
    /// Receives more. Returns how many bytes; none at the end.
    fn poll_receive(&mut self, context: &mut Context<'_>) -> Poll<io::Result<usize>> {
        let mut bytes = [MaybeUninit::uninit(); MAX_RECEIVED];
        let mut buffer = ReadBuf::uninit(&mut bytes);
        let Some(io) = &mut self.io else {
            return Poll::Ready(Ok(0));
        };
        ready!(Pin::new(io).poll_read(context, &mut buffer))?;
        self.received.extend_from_slice(buffer.filled());
        self.has_sent |= !buffer.filled().is_empty();
        Poll::Ready(Ok(buffer.filled().len()))
    }

    /// Receives the rest of what the client sends, up to the end, and drops it. Otherwise the client might get an
    /// error before it reads the response.
    fn poll_discard(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        for _ in 0..MAX_DISCARDED / MAX_RECEIVED {
            self.received = BytesMut::new();
            if ready!(self.poll_receive(context))? == 0 {
                return Poll::Ready(Ok(()));
            }
        }
        // Other connections get their turn.
        context.waker().wake_by_ref();
        Poll::Pending
    }
}

impl<T: AsyncRead + Unpin> AsyncRead for PacedStream<T> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if std::mem::take(&mut self.parsing) {
            context.waker().wake_by_ref();
            return Poll::Pending;
        }
        let phase = ready!(self.intake.poll_phase(context));
        if phase == Phase::Closing {
            return self.poll_discard(context);
        }
        if phase == Phase::Head && self.blocked {
            // `poll_write` wakes the task.
            return Poll::Pending;
        }
        loop {
            if let Some(count) = self.passable(phase) {
                self.pass(phase, count, buffer);
                return Poll::Ready(Ok(()));
            }
            if ready!(self.poll_receive(context))? == 0 {
                let rest = self.received.len();
                self.pass(phase, rest, buffer);
                return Poll::Ready(Ok(()));
            }
        }
    }
}

impl<T: AsyncRead + AsyncWrite + Unpin + 'static> AsyncWrite for PacedStream<T> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let mut length = bytes.len();
        if self.io.is_some()
            && let Some((start, status)) = bare_response(bytes)
        {
            // What precedes it is written first.
            if start > 0 {
                length = start;
            } else if let Some(response) = replacement(status, self.has_sent, self.explains)
                && let Some(io) = self.io.take()
            {
                self.refusal = Some(Box::pin(refuse(io, response)));
            }
        }
        if let Some(refusal) = &mut self.refusal {
            let refused = ready!(refusal.as_mut().poll(context));
            self.refusal = None;
            refused?;
        }
        let Some(io) = &mut self.io else {
            return Poll::Ready(Ok(length));
        };
        let bytes = bytes.get(..length).unwrap_or_default();
        let result = Pin::new(io).poll_write(context, bytes);
        if self.blocked && result.is_ready() {
            context.waker().wake_by_ref();
        }
        self.blocked = result.is_pending();
        result
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut self.io {
            Some(io) => Pin::new(io).poll_flush(context),
            None => Poll::Ready(Ok(())),
        }
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut self.io {
            Some(io) => Pin::new(io).poll_shutdown(context),
            None => Poll::Ready(Ok(())),
        }
    }
}

#[cfg(test)]
mod tests {
    use futures_util::poll;
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, DuplexStream, duplex};

    use super::{MAX_DISCARDED, MAX_RECEIVED, PacedStream};
    use crate::intake::Phase;

    const HEAD: &str = "GET / HTTP/1.1\r\nHost: x\r\n\r\n";

    /// Everything that the stream passes on until it waits.
    async fn passed(stream: &mut PacedStream<DuplexStream>) -> String {
        let mut all = String::new();
        let mut bytes = vec![0; 64 * 1024];
        let mut pauses = 0;
        while pauses < 2 {
            match poll!(Box::pin(stream.read(&mut bytes))) {
                std::task::Poll::Ready(read) => {
                    all.push_str(std::str::from_utf8(&bytes[..read.unwrap()]).unwrap());
                    pauses = 0;
                }
                // The first pause lets actix-http parse.
                std::task::Poll::Pending => pauses += 1,
            }
        }
        all
    }

    #[tokio::test]
    async fn a_request_is_passed_on_when_the_response_to_the_last_one_has_ended() {
        let (mut client, server) = duplex(64 * 1024);
        let mut stream = PacedStream::new(server, false);
        client
            .write_all(HEAD.repeat(1_000).as_bytes())
            .await
            .unwrap();
        let mut bytes = [0; 1024];
        for _ in 0..1_000 {
            let mut head = String::new();
            while !head.ends_with("\r\n\r\n") {
                let count = stream.read(&mut bytes).await.unwrap();
                head.push_str(std::str::from_utf8(&bytes[..count]).unwrap());
            }
            assert_eq!(head, HEAD);
            stream.intake.set(Phase::Response);
            assert_eq!(passed(&mut stream).await, "");
            stream.intake.end();
        }
        assert_eq!(passed(&mut stream).await, "");
    }

    #[tokio::test]
    async fn a_head_with_bare_newlines_ends_as_well() {
        let (mut client, server) = duplex(1024);
        let mut stream = PacedStream::new(server, false);
        let head = "GET / HTTP/1.1\nHost: x\n\n";
        client.write_all(head.repeat(2).as_bytes()).await.unwrap();
        let mut bytes = [0; 1024];
        assert_eq!(stream.read(&mut bytes).await.unwrap(), head.len());
    }

    #[tokio::test]
    async fn a_body_is_passed_on_up_to_its_length() {
        let (mut client, server) = duplex(64 * 1024);
        let mut stream = PacedStream::new(server, false);
        stream.intake.set(Phase::Body {
            left: Some(20_000),
            wanted: true,
        });
        let sent = "x".repeat(20_000) + HEAD;
        client.write_all(sent.as_bytes()).await.unwrap();
        assert_eq!(passed(&mut stream).await, "x".repeat(20_000));
        stream.intake.end();
        assert_eq!(passed(&mut stream).await, HEAD);
    }

    #[tokio::test]
    async fn the_rest_of_an_unwanted_body_is_received_and_not_passed_on() {
        let (mut client, server) = duplex(1024 * 1024);
        let mut stream = PacedStream::new(server, false);
        stream.intake.set(Phase::Body {
            left: Some(500_000),
            wanted: false,
        });
        client.write_all(&[b'x'; 500_000]).await.unwrap();
        assert_eq!(passed(&mut stream).await, "");
        stream.intake.end();
        let mut bytes = [0; 1024];
        let mut polls = 0;
        client.shutdown().await.unwrap();
        while poll!(Box::pin(stream.read(&mut bytes))).is_pending() {
            polls += 1;
        }
        assert_eq!(polls, 500_000 / MAX_DISCARDED);
        assert_eq!(stream.read(&mut bytes).await.unwrap(), 0);
    }

    #[tokio::test]
    async fn a_body_in_chunks_is_passed_on_while_it_is_wanted_and_not_past_its_end() {
        let (mut client, server) = duplex(64 * 1024);
        let mut stream = PacedStream::new(server, false);
        let body = "1\r\nx\r\n".repeat(2_000) + "0\r\n\r\n";
        let sent = body.clone() + HEAD;
        client.write_all(sent.as_bytes()).await.unwrap();
        stream.intake.set(Phase::Body {
            left: None,
            wanted: false,
        });
        assert_eq!(passed(&mut stream).await, "");
        stream.intake.set(Phase::Body {
            left: None,
            wanted: true,
        });
        let mut received = String::new();
        while !received.ends_with("0\r\n\r\n") {
            let mut bytes = [0; 4 * 1024];
            let count = stream.read(&mut bytes).await.unwrap();
            assert!(count <= super::MAX_STREAMED);
            received.push_str(std::str::from_utf8(&bytes[..count]).unwrap());
        }
        assert_eq!(received, body);
    }

    #[tokio::test]
    async fn a_head_that_trickles_in_is_passed_on_in_few_parts() {
        let (mut client, server) = duplex(64 * 1024);
        let mut stream = PacedStream::new(server, false);
        let head = format!(
            "GET / HTTP/1.1\r\nA: {}\r\n\r\n",
            "a".repeat(10 * MAX_RECEIVED)
        );
        let (mut parts, mut received) = (0, String::new());
        for byte in head.as_bytes() {
            client.write_all(&[*byte]).await.unwrap();
            let part = passed(&mut stream).await;
            parts += usize::from(!part.is_empty());
            received.push_str(&part);
        }
        assert_eq!(received, head);
        assert!(parts < 30, "{parts}");
    }

    #[tokio::test]
    async fn blank_lines_before_a_head_are_passed_on_in_few_parts_and_are_of_its_length() {
        for line in ["\n", "\r\n"] {
            let (mut client, server) = duplex(64 * 1024);
            let mut stream = PacedStream::new(server, false);
            let sent = line.repeat(20_000) + HEAD;
            client.write_all(sent.as_bytes()).await.unwrap();
            let (mut parts, mut received) = (0, 0);
            while received < sent.len() {
                received += stream.read(&mut [0; MAX_RECEIVED]).await.unwrap();
                parts += 1;
            }
            assert!(parts < 30, "{parts}");
            assert_eq!(stream.intake.head_length.get(), sent.len());
        }
    }

    #[tokio::test]
    async fn no_request_is_passed_on_while_the_client_does_not_read() {
        let (mut client, server) = duplex(100);
        let mut stream = PacedStream::new(server, false);
        client.write_all(HEAD.as_bytes()).await.unwrap();
        assert_eq!(stream.write(&[b'x'; 100]).await.unwrap(), 100);
        assert!(poll!(Box::pin(stream.write(b"x"))).is_pending());
        assert_eq!(passed(&mut stream).await, "");
        client.read_exact(&mut [0; 100]).await.unwrap();
        stream.write_all(b"x").await.unwrap();
        assert_eq!(passed(&mut stream).await, HEAD);
    }
}
