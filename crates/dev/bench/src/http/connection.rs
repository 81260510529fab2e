//! One connection of a client.

use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use anyhow::{Context as _, Result, bail, ensure};
use serde_json::Value;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpSocket, TcpStream};

const TIMEOUT: Duration = Duration::from_secs(60);
const MAX_HEADERS: usize = 64;

pub(crate) struct Connection {
    local: Ipv4Addr,
    address: SocketAddr,
    stream: TcpStream,
    /// What was received and not yet returned.
    received: Vec<u8>,
}

#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Response {
    pub(crate) status: u16,
    pub(crate) body: Vec<u8>,
    closes: bool,
}

impl Response {
    /// The body, if the status is 200.
    pub(crate) fn json(&self) -> Result<Value> {
        let text = String::from_utf8_lossy(&self.body);
        ensure!(self.status == 200, "{}: {text}", self.status);
        Ok(serde_json::from_str(&text)?)
    }
}

impl Connection {
    pub(crate) async fn open(address: SocketAddr) -> Result<Self> {
        Self::open_from(Ipv4Addr::LOCALHOST, address).await
    }

    pub(crate) async fn open_from(local: Ipv4Addr, address: SocketAddr) -> Result<Self> {
        Ok(Self {
            local,
            address,
            stream: connect(local, address).await?,
            received: Vec::with_capacity(16 * 1024),
        })
    }

    pub(crate) async fn call(&mut self, request: &[u8]) -> Result<Response> {
        let response = tokio::time::timeout(TIMEOUT, self.exchange(request))
            .await
            .with_context(|| format!("no response within {} s", TIMEOUT.as_secs()))??;
        if response.closes {
            self.stream = connect(self.local, self.address).await?;
            self.received.clear();
        }
        Ok(response)
    }

    async fn exchange(&mut self, request: &[u8]) -> Result<Response> {
        self.stream.write_all(request).await?;
        loop {
            if let Some((response, length)) = parse(&self.received)? {
                self.received.drain(..length);
                return Ok(response);
            }
            let read = self.stream.read_buf(&mut self.received).await?;
            ensure!(read > 0, "the server closed the connection");
        }
    }
}

/// A connection from one of this machine's addresses.
pub(crate) async fn connect(local: Ipv4Addr, address: SocketAddr) -> Result<TcpStream> {
    let socket = TcpSocket::new_v4()?;
    socket.bind((local, 0).into())?;
    let stream = socket.connect(address).await;
    let stream = stream.with_context(|| format!("connecting to {address}"))?;
    stream.set_nodelay(true)?;
    Ok(stream)
}

/// Returns the response at the start of `received` and its length, or `None` if it is not complete.
fn parse(received: &[u8]) -> Result<Option<(Response, usize)>> {
    let mut headers = [httparse::EMPTY_HEADER; MAX_HEADERS];
    let mut head = httparse::Response::new(&mut headers);
    let httparse::Status::Complete(start) = head.parse(received)? else {
        return Ok(None);
    };
    let status = head.code.context("a response without a status")?;
    // `None` is the length of a body in chunks.
    let (mut length, mut closes) = (Some(0), false);
    for header in head.headers.iter() {
        let value = header.value;
        if header.name.eq_ignore_ascii_case("content-length") {
            length = Some(std::str::from_utf8(value)?.trim().parse()?);
        } else if header.name.eq_ignore_ascii_case("transfer-encoding") {
            length = None;
        } else if header.name.eq_ignore_ascii_case("connection") {
            closes = value.eq_ignore_ascii_case(b"close");
        }
    }
    let after = received.get(start..).unwrap_or_default();
    let body = match length {
        Some(length) => after.get(..length).map(|body| (body.to_vec(), length)),
        None => chunks(after)?,
    };
    Ok(body.map(|(body, length)| {
        let response = Response {
            status,
            body,
            closes,
        };
        (response, start + length)
    }))
}

/// Returns a body in chunks and how many bytes they take, or `None` if it is not complete.
fn chunks(encoded: &[u8]) -> Result<Option<(Vec<u8>, usize)>> {
    let (mut body, mut at) = (Vec::new(), 0);
    loop {
        let rest = encoded.get(at..).unwrap_or_default();
        let (line, size) = match httparse::parse_chunk_size(rest) {
            Ok(httparse::Status::Complete(chunk)) => chunk,
            Ok(httparse::Status::Partial) => return Ok(None),
            Err(_) => bail!("a chunk without a size"),
        };
        let size = usize::try_from(size)?;
        // Each chunk ends with a line break, and so does the last one, which is empty.
        let Some(chunk) = rest.get(line..line + size + 2) else {
            return Ok(None);
        };
        at += line + size + 2;
        if size == 0 {
            return Ok(Some((body, at)));
        }
        body.extend_from_slice(chunk.get(..size).unwrap_or_default());
    }
}

pub(crate) fn request(
    method: &str,
    path: &str,
    token: Option<&str>,
    body: Option<&Value>,
) -> Vec<u8> {
    let mut head = format!("{method} {path} HTTP/1.1\r\nhost: 127.0.0.1\r\n");
    if let Some(token) = token {
        head.push_str(&format!("authorization: Bearer {token}\r\n"));
    }
    let body = body.map(Value::to_string);
    if body.is_some() {
        head.push_str("content-type: application/json\r\n");
    }
    if method != "GET" {
        let length = body.as_ref().map_or(0, String::len);
        head.push_str(&format!("content-length: {length}\r\n"));
    }
    head.push_str("\r\n");
    head.push_str(body.as_deref().unwrap_or_default());
    head.into_bytes()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{parse, request};

    fn body(received: &str) -> Option<(u16, String, usize)> {
        let (response, length) = parse(received.as_bytes()).unwrap()?;
        let body = String::from_utf8(response.body).unwrap();
        Some((response.status, body, length))
    }

    #[test]
    fn a_body_has_the_given_length() {
        let text = "HTTP/1.1 201 Created\r\nContent-Length: 2\r\n\r\nokHTTP";
        assert_eq!(body(text), Some((201, "ok".to_owned(), text.len() - 4)));
    }

    #[test]
    fn chunks_are_joined() {
        let text =
            "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\nab\r\n1\r\nc\r\n0\r\n\r\n";
        assert_eq!(body(text), Some((200, "abc".to_owned(), text.len())));
    }

    #[test]
    fn a_response_is_incomplete_until_its_last_byte() {
        for text in [
            "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok",
            "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\nab\r\n0\r\n\r\n",
        ] {
            for end in 0..text.len() {
                assert_eq!(body(text.get(..end).unwrap()), None, "{end} of {text}");
            }
            assert!(body(text).is_some());
        }
    }

    #[test]
    fn a_body_has_its_type_and_length() {
        let bytes = request("POST", "/a", Some("t"), Some(&json!({"b": 1})));
        assert_eq!(
            String::from_utf8(bytes).unwrap(),
            "POST /a HTTP/1.1\r\nhost: 127.0.0.1\r\nauthorization: Bearer t\r\n\
             content-type: application/json\r\ncontent-length: 7\r\n\r\n{\"b\":1}"
        );
    }

    #[test]
    fn a_request_without_a_body_says_so_unless_it_reads() {
        let put = String::from_utf8(request("PUT", "/a", None, None)).unwrap();
        assert!(put.contains("content-length: 0\r\n"), "{put}");
        let get = String::from_utf8(request("GET", "/a", None, None)).unwrap();
        assert!(!get.contains("content-length"), "{get}");
    }
}
