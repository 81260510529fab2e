//! A receiver of webhooks, or of any other HTTP requests.

use std::io::{self, Read as _, Write as _};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};

use httparse::{EMPTY_HEADER, Status};

use crate::sync::ToggleListener;

const MAX_HEADERS: usize = 64;
const CHUNK: usize = 8 * 1024;

/// A request that was read completely.
#[derive(Debug)]
pub struct Request<'bytes> {
    /// The path with the query.
    pub path: &'bytes str,
    pub headers: &'bytes [httparse::Header<'bytes>],
    pub body: &'bytes [u8],
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reply {
    /// With a status such as `200 OK`, further lines of the head, each of which ends with a line break, and a body.
    Send(&'static str, String, &'static str),
    /// Not at all: the connection is closed.
    Close,
    /// Not at all: the connection stays open until the caller gives up.
    Hang,
}

impl Reply {
    /// A response without further headers.
    pub fn status(status: &'static str) -> Self {
        Self::Send(status, String::new(), "")
    }
}

/// Handles the requests to one port, those of each connection on a thread of its own.
pub struct Receiver {
    /// Closing it refuses new connections, and keeps serving open ones.
    pub listener: ToggleListener,
}

impl Request<'_> {
    /// The value of a header, if it is text.
    pub fn header(&self, name: &str) -> Option<&str> {
        let mut headers = self.headers.iter();
        let found = headers.find(|header| header.name.eq_ignore_ascii_case(name));
        std::str::from_utf8(found?.value).ok()
    }

    pub fn key(&self) -> &str {
        key_of(self.path)
    }
}

impl Receiver {
    /// Listens on a free port.
    pub fn open(
        handle: impl Fn(&Request<'_>) -> Reply + Send + Sync + 'static,
    ) -> anyhow::Result<Self> {
        Self::open_at(Ipv4Addr::LOCALHOST, handle)
    }

    /// The same on another loopback address, which makes it another host.
    pub fn open_at(
        host: Ipv4Addr,
        handle: impl Fn(&Request<'_>) -> Reply + Send + Sync + 'static,
    ) -> anyhow::Result<Self> {
        let listener = ToggleListener::open(host, move |stream| {
            // Broken connections are reported by the sender.
            let _ = serve(stream, &handle);
        })?;
        Ok(Self { listener })
    }

    pub fn address(&self) -> SocketAddr {
        self.listener.address()
    }

    /// The URL of a path, which begins with a slash.
    pub fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address())
    }
}

/// The last segment of a URL's path.
pub fn key_of(url: &str) -> &str {
    let path = url.split('?').next().unwrap_or_default();
    path.rsplit('/').next().unwrap_or_default()
}

fn serve(mut stream: TcpStream, handle: &dyn Fn(&Request<'_>) -> Reply) -> io::Result<()> {
    let mut received = Vec::with_capacity(CHUNK);
    let mut chunk = [0; CHUNK];
    loop {
        while let Some((length, reply)) = handle_first(&received, handle)? {
            received.drain(..length);
            match reply {
                Reply::Send(status, head, body) => {
                    let length = body.len();
                    let response = format!(
                        "HTTP/1.1 {status}\r\n{head}content-length: {length}\r\n\r\n{body}"
                    );
                    stream.write_all(response.as_bytes())?;
                }
                Reply::Close => return Ok(()),
                Reply::Hang => return io::copy(&mut stream, &mut io::sink()).map(drop),
            }
        }
        let count = stream.read(&mut chunk)?;
        if count == 0 {
            return Ok(());
        }
        received.extend_from_slice(chunk.get(..count).unwrap_or_default());
    }
}

/// Handles the request at the start of `received`. Returns its length and the reply, or `None` if it is not complete.
fn handle_first(
    received: &[u8],
    handle: &dyn Fn(&Request<'_>) -> Reply,
) -> io::Result<Option<(usize, Reply)>> {
    let mut headers = [EMPTY_HEADER; MAX_HEADERS];
    let mut head = httparse::Request::new(&mut headers);
    let parsed = head.parse(received);
    let Status::Complete(start) = parsed.map_err(io::Error::other)? else {
        return Ok(None);
    };
    let mut request = Request {
        path: head.path.unwrap_or_default(),
        headers: head.headers,
        body: &[],
    };
    let length = request.header("content-length");
    let length: usize = length.and_then(|length| length.parse().ok()).unwrap_or(0);
    let Some(body) = received.get(start..start + length) else {
        return Ok(None);
    };
    request.body = body;
    Ok(Some((start + length, handle(&request))))
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use super::*;

    const ONE: &str = "POST /hooks/7-1?correlationId=7-1 HTTP/1.1\r\nContent-Length: 22\r\nWebhook-Id: abc\r\n\r\n{\"status\": \"approved\"}";

    #[test]
    fn two_requests_on_one_connection_are_read() {
        let both = format!("{ONE}{ONE}");
        let read = |request: &Request<'_>| {
            assert_eq!(request.key(), "7-1");
            assert_eq!(request.header("webhook-id"), Some("abc"));
            assert_eq!(request.body, b"{\"status\": \"approved\"}");
            Reply::Hang
        };
        for start in [0, ONE.len()] {
            let read = handle_first(&both.as_bytes()[start..], &read).unwrap();
            assert_eq!(read, Some((ONE.len(), Reply::Hang)));
        }
    }

    #[test]
    fn a_request_is_incomplete_until_its_last_byte() {
        for end in 0..ONE.len() {
            let read = handle_first(&ONE.as_bytes()[..end], &|_| panic!("{end}"));
            assert_eq!(read.unwrap(), None, "{end}");
        }
    }

    #[test]
    fn requests_are_answered_until_the_connection_is_closed() {
        let paths = Arc::new(Mutex::new(Vec::new()));
        let seen = Arc::clone(&paths);
        let receiver = Receiver::open(move |request| {
            seen.lock().unwrap().push(request.path.to_owned());
            match request.path {
                "/close" => Reply::Close,
                _ => Reply::status("410 Gone"),
            }
        })
        .unwrap();
        let mut stream = TcpStream::connect(receiver.address()).unwrap();
        stream
            .write_all(b"GET /a HTTP/1.1\r\n\r\nGET /close HTTP/1.1\r\n\r\n")
            .unwrap();
        let mut text = String::new();
        stream.read_to_string(&mut text).unwrap();
        assert_eq!(text, "HTTP/1.1 410 Gone\r\ncontent-length: 0\r\n\r\n");
        assert_eq!(*paths.lock().unwrap(), ["/a", "/close"]);
    }
}
