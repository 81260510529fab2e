//! Makes problems of the responses that actix-http sends by itself.
//!
//! actix-http responds to a request that it cannot read with a status, without a body and without a request id,
//! and then closes the connection. It has no hook for these responses. They are the last that it writes, and no
//! response of an application looks like them if all of those carry `X-Request-Id`.

use std::io;
use std::time::Duration;

use actix_web::http::StatusCode;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _, copy, sink};
use tokio::time::timeout;

/// How long the client may still send after the response.
const MAX_DRAIN_TIME: Duration = Duration::from_secs(1);
/// How many bytes it may send: more than one head.
const MAX_DRAINED_BYTES: u64 = 1024 * 1024;
/// A response without a body that is longer than this is not one of actix-http's.
const MAX_BARE_LENGTH: usize = 256;

/// What replaces a response of actix-http, if anything: a problem, if the server `explains`, or nothing.
pub(crate) fn replacement(status: StatusCode, has_sent: bool, explains: bool) -> Option<Vec<u8>> {
    if status == StatusCode::REQUEST_TIMEOUT && !has_sent {
        // The client would take a response for that to its next request.
        return Some(Vec::new());
    }
    http_kit::unreadable_request(status).filter(|_| explains)
}

/// Ends a connection with a response, if it is not empty. What the client still sends is then read, because a socket that is
/// closed with unread data resets the connection, and the client might never see the response.
pub(crate) async fn refuse<T: AsyncRead + AsyncWrite + Unpin>(
    mut io: T,
    response: Vec<u8>,
) -> io::Result<()> {
    io.write_all(&response).await?;
    io.shutdown().await?;
    if !response.is_empty() {
        let mut rest = io.take(MAX_DRAINED_BYTES);
        // However that ends, so does the connection.
        let _ = timeout(MAX_DRAIN_TIME, copy(&mut rest, &mut sink())).await;
    }
    Ok(())
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
