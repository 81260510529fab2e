//! The receivers of webhooks: some are fast, some slow, some fail at first, some respond with 410. Each one
//! can be made to refuse connections or to hang.

use std::{
    io::{self, BufRead, BufReader, Write},
    net::TcpStream,
    sync::Arc,
    thread,
    time::{Duration, Instant},
};

use chrono::Utc;
use serde_json::Value;
use ureq::http::{HeaderMap, HeaderName, HeaderValue};

use crate::{
    history::{Arrival, History, Reply},
    rng::Rng,
    signature::{Keys, secret_of},
    sync::Watch,
    toggle_listener::ToggleListener,
};

const MAX_BODY: usize = 1024 * 1024;
const MIN_DELAY: Duration = Duration::from_millis(300);
const MAX_DELAY: Duration = Duration::from_secs(2);

/// How a receiver behaves while no fault hits it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Behaviour {
    Fast,
    /// Responds after 300 ms to 2 s.
    Slow,
    /// Fails the first one to three attempts of each webhook.
    Failing,
    /// Responds with 410 for half of the webhooks and with 200 for the others.
    Gone,
}

/// The receivers of a run, in this order.
pub(crate) const BEHAVIOURS: [Behaviour; 9] = [
    Behaviour::Fast,
    Behaviour::Fast,
    Behaviour::Fast,
    Behaviour::Slow,
    Behaviour::Slow,
    Behaviour::Failing,
    Behaviour::Failing,
    Behaviour::Failing,
    Behaviour::Gone,
];

/// A receiver on its own port.
pub(crate) struct Receiver {
    pub(crate) name: String,
    pub(crate) behaviour: Behaviour,
    seed: u64,
    listener: ToggleListener,
    hanging: Arc<Watch<bool>>,
}

/// The state that the connections of a receiver share.
struct Handler {
    behaviour: Behaviour,
    seed: u64,
    keys: Keys,
    hanging: Arc<Watch<bool>>,
    history: Arc<History>,
}

/// A request.
pub(crate) struct Request {
    /// The last segment of the path.
    key: String,
    headers: HeaderMap,
    pub(crate) body: Vec<u8>,
}

impl Receiver {
    pub(crate) fn open(
        number: usize,
        behaviour: Behaviour,
        port: u16,
        seed: u64,
        keys: &Keys,
        history: &Arc<History>,
    ) -> anyhow::Result<Self> {
        let hanging = Arc::new(Watch::new(false));
        let handler = Handler {
            behaviour,
            seed,
            keys: keys.clone(),
            hanging: Arc::clone(&hanging),
            history: Arc::clone(history),
        };
        let listener = ToggleListener::open(port, move |stream| {
            // Broken connections are reported by the sender.
            let _ = handler.serve(stream);
        })?;
        let behaviour_name = match behaviour {
            Behaviour::Fast => "fast",
            Behaviour::Slow => "slow",
            Behaviour::Failing => "failing",
            Behaviour::Gone => "gone",
        };
        Ok(Self {
            name: format!("receiver {number} ({behaviour_name})"),
            behaviour,
            seed,
            listener,
            hanging,
        })
    }

    pub(crate) fn url(&self, key: &str) -> String {
        format!(
            "http://127.0.0.1:{}/hooks/{key}?correlationId={key}",
            self.listener.port()
        )
    }

    /// Whether the response for this webhook is always 410.
    pub(crate) fn is_gone(&self, key: &str) -> bool {
        is_gone(self.behaviour, self.seed, key)
    }

    /// Refuses new connections and keeps serving open ones.
    pub(crate) fn refuse(&self) {
        self.listener.close();
    }

    /// Accepts requests without responding.
    pub(crate) fn hang(&self) {
        self.hanging.set(true);
    }

    pub(crate) fn restore(&self) {
        self.hanging.set(false);
        self.listener.reopen();
    }
}

impl Handler {
    fn serve(&self, stream: TcpStream) -> io::Result<()> {
        let mut out = stream.try_clone()?;
        let mut input = BufReader::new(stream);
        while let Some(request) = read_request(&mut input)? {
            let Some(response) = self.respond(&request) else {
                return Ok(());
            };
            out.write_all(response.as_bytes())?;
        }
        Ok(())
    }

    /// Returns the whole response, or `None` to close the connection without one.
    fn respond(&self, request: &Request) -> Option<String> {
        let number = self
            .history
            .record_arrival(&request.key, self.arrival(request));
        if self.hanging.get() {
            self.hanging.wait_while(|hanging| *hanging);
            return None;
        }
        let (reply, response) = self.choose_reply(&request.key, number);
        self.history.record_reply(&request.key, number, reply);
        response
    }

    fn arrival(&self, request: &Request) -> Arrival {
        let body: Value = serde_json::from_slice(&request.body).unwrap_or_default();
        let field = |name: &str| body.get(name).and_then(Value::as_str);
        let id = request.headers.get("webhook-id");
        let id = id.and_then(|id| id.to_str().ok());
        let secret = secret_of(self.seed, &request.key);
        let now = Instant::now();
        Arrival {
            webhook_id: id.unwrap_or_default().to_owned(),
            task: field("id").unwrap_or_default().to_owned(),
            status: field("status").unwrap_or_default().to_owned(),
            signature_error: self.keys.find_error(
                &request.headers,
                &request.body,
                secret.as_deref(),
            ),
            at: now,
            received: Utc::now(),
            reply: Reply::None,
            replied_at: now,
        }
    }

    /// Chooses the reply to the request of this number, after a delay if the receiver is slow.
    fn choose_reply(&self, key: &str, number: usize) -> (Reply, Option<String>) {
        let mut rng = Rng::for_subject(self.seed, key);
        match self.behaviour {
            Behaviour::Failing if number <= rng.below(3) => return failure(rng.below(6), key),
            Behaviour::Slow => thread::sleep(rng.between(MIN_DELAY, MAX_DELAY)),
            Behaviour::Gone if is_gone(self.behaviour, self.seed, key) => {
                return (Reply::Failed(Duration::ZERO), Some(head("410 Gone", "")));
            }
            _ => {}
        }
        (Reply::Accepted, Some(head("200 OK", "")))
    }
}

fn is_gone(behaviour: Behaviour, seed: u64, key: &str) -> bool {
    behaviour == Behaviour::Gone && Rng::for_subject(seed, &format!("gone {key}")).chance(50)
}

/// One of several failures. A redirect leads to a webhook that was never registered.
fn failure(which: usize, key: &str) -> (Reply, Option<String>) {
    let (pause, response) = match which {
        0 => (0, None),
        1 => (
            1,
            Some(head("503 Service Unavailable", "retry-after: 1\r\n")),
        ),
        2 => (3, Some(head("429 Too Many Requests", "retry-after: 3\r\n"))),
        3 => {
            let location = format!("location: /hooks/redirected-{key}\r\n");
            (0, Some(head("307 Temporary Redirect", &location)))
        }
        4 => (0, Some(head("404 Not Found", ""))),
        _ => (0, Some(head("500 Internal Server Error", ""))),
    };
    (Reply::Failed(Duration::from_secs(pause)), response)
}

fn head(status: &str, header: &str) -> String {
    format!("HTTP/1.1 {status}\r\n{header}content-length: 2\r\n\r\nok")
}

/// Reads one request. Returns `None` if the connection was closed before it.
pub(crate) fn read_request(input: &mut impl BufRead) -> io::Result<Option<Request>> {
    let mut line = String::new();
    if input.read_line(&mut line)? == 0 {
        return Ok(None);
    }
    let key = key_of(line.split(' ').nth(1).unwrap_or_default()).to_owned();
    let mut headers = HeaderMap::new();
    loop {
        let mut line = String::new();
        if input.read_line(&mut line)? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let Some((name, value)) = line.trim_end().split_once(':') else {
            break;
        };
        let name = HeaderName::from_bytes(name.as_bytes());
        if let (Ok(name), Ok(value)) = (name, HeaderValue::from_str(value.trim())) {
            headers.append(name, value);
        }
    }
    let length = headers.get("content-length");
    let length = length.and_then(|length| length.to_str().ok()?.parse().ok());
    let mut body = vec![0; length.unwrap_or(0).min(MAX_BODY)];
    input.read_exact(&mut body)?;
    Ok(Some(Request { key, headers, body }))
}

/// The last segment of a URL's path.
pub(crate) fn key_of(url: &str) -> &str {
    let path = url.split('?').next().unwrap_or_default();
    path.rsplit('/').next().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_requests_on_one_connection_are_read() {
        let one = "POST /hooks/7-1?correlationId=7-1 HTTP/1.1\r\nContent-Length: 22\r\nWebhook-Id: abc\r\n\r\n{\"status\": \"approved\"}";
        let mut input = io::Cursor::new(format!("{one}{one}"));
        for _ in 0..2 {
            let request = read_request(&mut input).unwrap().unwrap();
            assert_eq!(request.key, "7-1");
            assert_eq!(request.headers["webhook-id"], "abc");
            assert_eq!(request.body, b"{\"status\": \"approved\"}");
        }
        assert!(read_request(&mut input).unwrap().is_none());
    }

    #[test]
    fn an_incomplete_request_is_an_error() {
        let mut input =
            io::Cursor::new("POST /hooks/7-1 HTTP/1.1\r\ncontent-length: 9\r\n\r\n{\"st");
        assert!(read_request(&mut input).is_err());
    }
}
