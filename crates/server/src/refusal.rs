//! Makes problems of the responses that actix-http sends by itself.
//!
//! actix-http responds to a request that it cannot read with a status, without a body and without a request id,
//! and then closes the connection. It has no hook for these responses. They are the last that it writes, and no
//! response of an application looks like them if all of those carry `X-Request-Id`.

use std::io;
use std::mem::MaybeUninit;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use actix_web::http::StatusCode;
use actix_web::web::{Buf as _, Bytes};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Sleep, sleep};
use tokio_util::io::poll_write_buf;

/// How long the client may still send after the response.
const MAX_DRAIN_TIME: Duration = Duration::from_secs(1);
/// How many bytes it may send: more than one head.
const MAX_DRAINED_BYTES: usize = 1024 * 1024;
/// A response without a body that is longer than this is not one of actix-http's.
const MAX_BARE_LENGTH: usize = 256;
const DROPPED_AT_ONCE: usize = 8 * 1024;

/// What replaces such a response: the end of the connection.
pub(crate) enum Refusal {
    /// The rest of a response.
    Respond(Bytes),
    /// What the client still sends is read, because a socket that is closed with unread data resets the
    /// connection, and the client might never see the response.
    Drain {
        until: Pin<Box<Sleep>>,
        read: usize,
    },
    Done,
}

impl Refusal {
    /// What replaces a response of actix-http, if anything: a problem, if the server `explains`.
    pub(crate) fn of(status: StatusCode, has_sent: bool, explains: bool) -> Option<Self> {
        if status == StatusCode::REQUEST_TIMEOUT && !has_sent {
            // The client would take a response for that to its next request.
            return Some(Self::Done);
        }
        let response = http_kit::unreadable_request(status).filter(|_| explains)?;
        Some(Self::Respond(response.into()))
    }

    pub(crate) fn poll<T: AsyncRead + AsyncWrite + Unpin>(
        &mut self,
        io: &mut T,
        context: &mut Context<'_>,
    ) -> Poll<io::Result<()>> {
        loop {
            *self = match self {
                Self::Respond(rest) => {
                    while rest.has_remaining() {
                        if ready!(poll_write_buf(Pin::new(&mut *io), context, rest))? == 0 {
                            return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
                        }
                    }
                    ready!(Pin::new(&mut *io).poll_shutdown(context))?;
                    Self::Drain {
                        until: Box::pin(sleep(MAX_DRAIN_TIME)),
                        read: 0,
                    }
                }
                Self::Drain { until, read } => {
                    match poll_drop(io, context) {
                        Poll::Ready(Ok(count @ 1..)) => {
                            *read += count;
                            if *read < MAX_DRAINED_BYTES {
                                continue;
                            }
                        }
                        Poll::Ready(_) => {}
                        Poll::Pending => ready!(until.as_mut().poll(context)),
                    }
                    Self::Done
                }
                Self::Done => return Poll::Ready(Ok(())),
            };
        }
    }
}

/// Receives some bytes and drops them. Returns how many; none at the end.
pub(crate) fn poll_drop(
    io: &mut (impl AsyncRead + Unpin),
    context: &mut Context<'_>,
) -> Poll<io::Result<usize>> {
    let mut bytes = [MaybeUninit::uninit(); DROPPED_AT_ONCE];
    let mut buffer = ReadBuf::uninit(&mut bytes);
    ready!(Pin::new(io).poll_read(context, &mut buffer))?;
    Poll::Ready(Ok(buffer.filled().len()))
}

/// Finds a response of actix-http at the end of what it writes: where it begins, and its status.
pub(crate) fn bare_response(written: &[u8]) -> Option<(usize, StatusCode)> {
    const VERSION: &[u8] = b"HTTP/1.";
    if !written.ends_with(b"\r\n\r\n") {
        return None;
    }
    let skipped = written.len().saturating_sub(MAX_BARE_LENGTH);
    let end = written.get(skipped..)?;
    let start = end
        .windows(VERSION.len())
        .rposition(|part| part == VERSION)?;
    let head = std::str::from_utf8(end.get(start..)?).ok()?;
    let mut lines = head.trim_end().split("\r\n");
    let status = lines.next()?.split(' ').nth(1)?.parse().ok()?;
    let refused = matches!(
        status,
        StatusCode::BAD_REQUEST
            | StatusCode::REQUEST_TIMEOUT
            | StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE
    );
    let mut empty = false;
    for line in lines {
        match line.split_once(": ")? {
            ("content-length", length) => empty = length == "0",
            ("connection" | "date", _) => {}
            _ => return None,
        }
    }
    (refused && empty).then_some((skipped + start, status))
}

#[cfg(test)]
mod tests {
    use actix_web::http::StatusCode;
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, duplex, split};

    use super::bare_response;
    use crate::paced_stream::PacedStream;

    const BAD_REQUEST: &str = "HTTP/1.1 400 Bad Request\r\ncontent-length: 0\r\nconnection: close\r\n\
        date: Sun, 22 Nov 2026 16:00:00 GMT\r\n\r\n";
    const OK: &str = "HTTP/1.1 200 OK\r\ncontent-length: 2\r\nx-request-id: 1\r\n\r\n{}";

    #[test]
    fn only_a_refusal_without_a_body_is_replaced() {
        let found = |written: &str| bare_response(written.as_bytes());
        assert_eq!(found(BAD_REQUEST), Some((0, StatusCode::BAD_REQUEST)));
        let pipelined = format!("{OK}{BAD_REQUEST}");
        assert_eq!(found(&pipelined), Some((OK.len(), StatusCode::BAD_REQUEST)));
        for response in [
            "",
            "\r\n\r\n",
            OK,
            &BAD_REQUEST.replace("date: ", "x-request-id: 1\r\ndate: "),
            &BAD_REQUEST.replace("length: 0", "length: 4"),
            &BAD_REQUEST.replace("400 Bad Request", "204 No Content"),
            &format!("{BAD_REQUEST}{OK}"),
            &BAD_REQUEST.replace("\r\n\r\n", "\r\n"),
        ] {
            assert_eq!(found(response), None, "{response}");
        }
    }

    #[tokio::test]
    async fn a_client_reads_a_problem_although_it_is_still_sending() {
        // The pipe is so short that everything is written in parts.
        let (client, server) = duplex(16);
        let mut server = PacedStream::new(server, true);
        let written = format!("{OK}{BAD_REQUEST}");
        let refuse = async {
            server.read_u8().await.unwrap();
            server.write_all(written.as_bytes()).await.unwrap();
        };
        let (mut reader, mut writer) = split(client);
        let mut received = String::new();
        let (sent, read, ()) = tokio::join!(
            writer.write_all(&[b'x'; 1_000]),
            reader.read_to_string(&mut received),
            refuse
        );
        assert!(sent.is_ok() && read.is_ok());
        assert!(received.starts_with(OK), "{received}");
        assert_eq!(received.matches("HTTP/1.1 ").count(), 2, "{received}");
        assert!(
            received.contains("\"code\":\"malformed-request\""),
            "{received}"
        );
    }

    #[tokio::test]
    async fn a_client_that_has_sent_nothing_reads_nothing() {
        let (mut client, server) = duplex(1024);
        let mut server = PacedStream::new(server, false);
        let timeout = BAD_REQUEST.replace("400 Bad Request", "408 Request Timeout");
        server.write_all(timeout.as_bytes()).await.unwrap();
        drop(server);
        let mut received = String::new();
        client.read_to_string(&mut received).await.unwrap();
        assert_eq!(received, "");
    }
}
