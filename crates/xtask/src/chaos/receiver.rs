//! The receivers of webhooks: some are fast, some slow, some fail at first, and each can be made to
//! refuse or to hang.

use std::{
    io::{self, BufRead, BufReader, Write},
    net::TcpStream,
    sync::Arc,
    thread,
    time::{Duration, Instant},
};

use serde_json::Value;

use crate::chaos::{
    dice::Dice,
    door::{Door, Watched},
    journal::{Arrival, Journal},
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
}

/// All that run, in this order.
pub(crate) const MANNERS: [Manner; 8] = [
    Manner::Fast,
    Manner::Fast,
    Manner::Fast,
    Manner::Slow,
    Manner::Slow,
    Manner::Failing,
    Manner::Failing,
    Manner::Failing,
];

/// One receiver on a port of its own.
pub(crate) struct Receiver {
    pub(crate) name: String,
    pub(crate) manner: Manner,
    door: Door,
    hanging: Arc<Watched<bool>>,
}

/// What the connections of a receiver share.
struct Desk {
    manner: Manner,
    seed: u64,
    hanging: Arc<Watched<bool>>,
    journal: Arc<Journal>,
}

struct Request {
    /// The last segment of the path.
    key: String,
    webhook_id: String,
    body: Value,
}

impl Receiver {
    pub(crate) fn open(
        number: usize,
        manner: Manner,
        port: u16,
        seed: u64,
        journal: &Arc<Journal>,
    ) -> anyhow::Result<Self> {
        let hanging = Arc::new(Watched::new(false));
        let desk = Desk {
            manner,
            seed,
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
        };
        Ok(Self {
            name: format!("receiver {number} ({manner_name})"),
            manner,
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
        let field = |name: &str| request.body.get(name).and_then(Value::as_str);
        let arrival = Arrival {
            webhook_id: request.webhook_id.clone(),
            task: field("id").unwrap_or_default().to_owned(),
            status: field("status").unwrap_or_default().to_owned(),
            taken: false,
            at: Instant::now(),
        };
        let number = self.journal.arrived(&request.key, arrival);
        if self.hanging.get() {
            self.hanging.wait_while(|hanging| *hanging);
            return None;
        }
        let mut dice = Dice::of(self.seed, &request.key);
        match self.manner {
            Manner::Fast => {}
            Manner::Slow => thread::sleep(dice.between(SHORTEST_SLOWNESS, LONGEST_SLOWNESS)),
            Manner::Failing => {
                if number <= dice.below(3) {
                    return failure(dice.below(4));
                }
            }
        }
        self.journal.taken(&request.key, number);
        Some(head("200 OK", ""))
    }
}

/// One of the ways in which receivers fail.
fn failure(which: usize) -> Option<String> {
    match which {
        0 => None,
        1 => Some(head("503 Service Unavailable", "retry-after: 1\r\n")),
        2 => Some(head("429 Too Many Requests", "retry-after: 2\r\n")),
        _ => Some(head("500 Internal Server Error", "")),
    }
}

fn head(status: &str, header: &str) -> String {
    format!("HTTP/1.1 {status}\r\n{header}content-length: 2\r\n\r\nok")
}

/// Reads one request; `None` when the connection ended between two.
fn read_request(input: &mut impl BufRead) -> io::Result<Option<Request>> {
    let mut line = String::new();
    if input.read_line(&mut line)? == 0 {
        return Ok(None);
    }
    let key = key_of(line.split(' ').nth(1).unwrap_or_default()).to_owned();
    let (mut length, mut webhook_id) = (0, String::new());
    loop {
        let mut line = String::new();
        if input.read_line(&mut line)? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let Some((name, value)) = line.trim_end().split_once(':') else {
            break;
        };
        match name.to_ascii_lowercase().as_str() {
            "content-length" => length = value.trim().parse().unwrap_or(0),
            "webhook-id" => value.trim().clone_into(&mut webhook_id),
            _ => {}
        }
    }
    let mut body = vec![0; length.min(LARGEST_BODY)];
    input.read_exact(&mut body)?;
    Ok(Some(Request {
        key,
        webhook_id,
        body: serde_json::from_slice(&body).unwrap_or_default(),
    }))
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
            assert_eq!(request.webhook_id, "abc");
            assert_eq!(request.body["status"], "approved");
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
