//! The receivers of webhooks: some are fast, some slow, some fail at first, some want nothing any more, and
//! each can be made to refuse or to hang.

use std::{
    io::{self, BufRead, BufReader, Write},
    net::TcpStream,
    sync::Arc,
    thread,
    time::{Duration, Instant},
};

use serde_json::Value;
use ureq::http::{HeaderMap, HeaderName, HeaderValue};

use crate::{
    dice::Dice,
    door::{Door, Watched},
    journal::{Answer, Arrival, Journal},
    signature::{Keys, secret_of},
};

const LARGEST_BODY: usize = 1024 * 1024;
const SHORTEST_SLOWNESS: Duration = Duration::from_millis(300);
const LONGEST_SLOWNESS: Duration = Duration::from_secs(2);

/// How a receiver behaves when nothing is wrong with it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Manner {
    Fast,
    /// Answers after 300 ms to 2 s.
    Slow,
    /// Fails the first one to three attempts of each webhook.
    Failing,
    /// Answers 410 to every attempt of one webhook of two, and 200 to those of the others.
    Leaving,
}

/// All that run, in this order.
pub(crate) const MANNERS: [Manner; 9] = [
    Manner::Fast,
    Manner::Fast,
    Manner::Fast,
    Manner::Slow,
    Manner::Slow,
    Manner::Failing,
    Manner::Failing,
    Manner::Failing,
    Manner::Leaving,
];

/// One receiver on a port of its own.
pub(crate) struct Receiver {
    pub(crate) name: String,
    pub(crate) manner: Manner,
    seed: u64,
    door: Door,
    hanging: Arc<Watched<bool>>,
}

/// What the connections of a receiver share.
struct Desk {
    manner: Manner,
    seed: u64,
    keys: Keys,
    hanging: Arc<Watched<bool>>,
    journal: Arc<Journal>,
}

/// One request, as it came.
pub(crate) struct Request {
    /// The last segment of the path.
    key: String,
    headers: HeaderMap,
    pub(crate) body: Vec<u8>,
}

impl Receiver {
    pub(crate) fn open(
        number: usize,
        manner: Manner,
        port: u16,
        seed: u64,
        keys: &Keys,
        journal: &Arc<Journal>,
    ) -> anyhow::Result<Self> {
        let hanging = Arc::new(Watched::new(false));
        let desk = Desk {
            manner,
            seed,
            keys: keys.clone(),
            hanging: Arc::clone(&hanging),
            journal: Arc::clone(journal),
        };
        let door = Door::open(port, move |stream| {
            // A connection that breaks is the sender's to notice.
            let _ = desk.serve(stream);
        })?;
        let manner_name = match manner {
            Manner::Fast => "fast",
            Manner::Slow => "slow",
            Manner::Failing => "failing",
            Manner::Leaving => "leaving",
        };
        Ok(Self {
            name: format!("receiver {number} ({manner_name})"),
            manner,
            seed,
            door,
            hanging,
        })
    }

    pub(crate) fn url(&self, key: &str) -> String {
        format!(
            "http://127.0.0.1:{}/hooks/{key}?correlationId={key}",
            self.door.port()
        )
    }

    /// Whether every attempt of this webhook is answered with 410.
    pub(crate) fn is_gone(&self, key: &str) -> bool {
        is_gone(self.manner, self.seed, key)
    }

    /// Refuses new connections. Those that stand are served on.
    pub(crate) fn refuse(&self) {
        self.door.shut();
    }

    /// Takes requests and answers none of them.
    pub(crate) fn hang(&self) {
        self.hanging.set(true);
    }

    pub(crate) fn heal(&self) {
        self.hanging.set(false);
        self.door.reopen();
    }
}

impl Desk {
    fn serve(&self, stream: TcpStream) -> io::Result<()> {
        let mut out = stream.try_clone()?;
        let mut input = BufReader::new(stream);
        while let Some(request) = read_request(&mut input)? {
            let Some(answer) = self.answer(&request) else {
                return Ok(());
            };
            out.write_all(answer.as_bytes())?;
        }
        Ok(())
    }

    /// The whole answer; `None` when the connection ends without one.
    fn answer(&self, request: &Request) -> Option<String> {
        let number = self.journal.arrived(&request.key, self.arrival(request));
        if self.hanging.get() {
            self.hanging.wait_while(|hanging| *hanging);
            return None;
        }
        let (answer, text) = self.reaction(&request.key, number);
        self.journal.answered(&request.key, number, answer);
        text
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
            forged: self
                .keys
                .fault_of(&request.headers, &request.body, secret.as_deref()),
            at: now,
            answer: Answer::None,
            answered: now,
        }
    }

    /// How the request of this number is answered, by the time that it takes.
    fn reaction(&self, key: &str, number: usize) -> (Answer, Option<String>) {
        let mut dice = Dice::of(self.seed, key);
        match self.manner {
            Manner::Failing if number <= dice.below(3) => return failure(dice.below(6), key),
            Manner::Slow => thread::sleep(dice.between(SHORTEST_SLOWNESS, LONGEST_SLOWNESS)),
            Manner::Leaving if is_gone(self.manner, self.seed, key) => {
                return (Answer::Failed(Duration::ZERO), Some(head("410 Gone", "")));
            }
            _ => {}
        }
        (Answer::Taken, Some(head("200 OK", "")))
    }
}

fn is_gone(manner: Manner, seed: u64, key: &str) -> bool {
    manner == Manner::Leaving && Dice::of(seed, &format!("gone {key}")).chance(50)
}

/// One of the ways in which receivers fail. What a redirect leads to is a webhook that nobody registered.
fn failure(which: usize, key: &str) -> (Answer, Option<String>) {
    let (pause, text) = match which {
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
    (Answer::Failed(Duration::from_secs(pause)), text)
}

fn head(status: &str, header: &str) -> String {
    format!("HTTP/1.1 {status}\r\n{header}content-length: 2\r\n\r\nok")
}

/// Reads one request; `None` when the connection ended between two.
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
    let mut body = vec![0; length.unwrap_or(0).min(LARGEST_BODY)];
    input.read_exact(&mut body)?;
    Ok(Some(Request { key, headers, body }))
}

/// The last segment of a url's path.
pub(crate) fn key_of(url: &str) -> &str {
    let path = url.split('?').next().unwrap_or_default();
    path.rsplit('/').next().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_is_read_and_the_next_one_too() {
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
    fn half_a_request_is_none() {
        let mut input =
            io::Cursor::new("POST /hooks/7-1 HTTP/1.1\r\ncontent-length: 9\r\n\r\n{\"st");
        assert!(read_request(&mut input).is_err());
    }
}
