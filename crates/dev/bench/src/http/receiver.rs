//! The receiver of webhooks.

use std::collections::HashMap;
use std::net::{Ipv4Addr, TcpListener as StdListener};
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use anyhow::Context as _;
use local_stack::ports;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

const MAX_HEADERS: usize = 64;
const RESPONSE: &[u8] = b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n";
/// How often another port is tried when an address uses the chosen one.
const ATTEMPTS: usize = 20;

/// How a host treats webhooks.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Behaviour {
    /// Responds at once.
    Respond,
    /// Responds after a time.
    RespondAfter(Duration),
    /// Accepts and never responds.
    Hang,
}

/// The arrivals of the expected webhooks.
#[derive(Debug, Default)]
struct Arrivals {
    expected: Range<u64>,
    first: HashMap<u64, Instant>,
    repeated: usize,
    last: Option<Instant>,
}

/// Hosts on one port, each with an address of its own. Records when webhooks with `?seq=N` arrive.
pub(crate) struct Receiver {
    port: u16,
    arrivals: Arc<Mutex<Arrivals>>,
    /// Dropping it ends the thread.
    _stop: tokio::sync::oneshot::Sender<()>,
}

impl Receiver {
    /// Starts hosts at these loopback addresses, on a thread of their own, so that the client delays no arrival.
    pub(crate) fn start(hosts: &[(Ipv4Addr, Behaviour)]) -> anyhow::Result<Self> {
        let (port, listeners) = bind(hosts)?;
        let arrivals = Arc::<Mutex<Arrivals>>::default();
        let shared = Arc::clone(&arrivals);
        let (stop, stopped) = tokio::sync::oneshot::channel();
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()?;
        std::thread::spawn(move || {
            runtime.block_on(async {
                for (listener, behaviour) in listeners {
                    tokio::spawn(accept(listener, behaviour, Arc::clone(&shared)));
                }
                // It fails when the receiver is dropped, which is the sign to end.
                let _ = stopped.await;
            });
        });
        Ok(Self {
            port,
            arrivals,
            _stop: stop,
        })
    }

    /// The URL of webhook `seq` at a host.
    pub(crate) fn url(&self, host: Ipv4Addr, seq: u64) -> String {
        format!("http://{host}:{}/?seq={seq}", self.port)
    }

    /// A URL at a host whose arrivals are not recorded.
    pub(crate) fn unrecorded_url(&self, host: Ipv4Addr) -> String {
        format!("http://{host}:{}/", self.port)
    }

    /// Forgets earlier arrivals, and records those of `expected`.
    pub(crate) fn expect(&self, expected: Range<u64>) {
        *self.lock() = Arrivals {
            expected,
            ..Arrivals::default()
        };
    }

    /// How many of the expected webhooks arrived.
    pub(crate) fn arrived(&self) -> usize {
        self.lock().first.len()
    }

    /// When the last webhook arrived, a repeated one included.
    pub(crate) fn last_arrival(&self) -> Option<Instant> {
        self.lock().last
    }

    /// When each expected webhook arrived first.
    pub(crate) fn first_arrivals(&self) -> HashMap<u64, Instant> {
        self.lock().first.clone()
    }

    /// How many webhooks arrived that had arrived before.
    pub(crate) fn repeated(&self) -> usize {
        self.lock().repeated
    }

    fn lock(&self) -> MutexGuard<'_, Arrivals> {
        lock(&self.arrivals)
    }
}

fn lock(arrivals: &Mutex<Arrivals>) -> MutexGuard<'_, Arrivals> {
    arrivals.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Listens on the same port of all addresses.
fn bind(hosts: &[(Ipv4Addr, Behaviour)]) -> anyhow::Result<(u16, Vec<(StdListener, Behaviour)>)> {
    let mut last = None;
    for _ in 0..ATTEMPTS {
        let [port] = ports::free()?;
        let bound: std::io::Result<Vec<_>> = hosts
            .iter()
            .map(|(host, behaviour)| {
                let listener = StdListener::bind((*host, port))?;
                listener.set_nonblocking(true)?;
                Ok((listener, *behaviour))
            })
            .collect();
        match bound {
            Ok(listeners) => return Ok((port, listeners)),
            Err(error) => last = Some(error),
        }
    }
    Err(last.context("there is no host")?).context("listening for webhooks")
}

async fn accept(listener: StdListener, behaviour: Behaviour, arrivals: Arc<Mutex<Arrivals>>) {
    let Ok(listener) = TcpListener::from_std(listener) else {
        return;
    };
    // An error concerns one connection, or the limit of open files, which ends others first.
    loop {
        if let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(serve(stream, behaviour, Arc::clone(&arrivals)));
        } else {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }
}

async fn serve(mut stream: TcpStream, behaviour: Behaviour, arrivals: Arc<Mutex<Arrivals>>) {
    let _ = stream.set_nodelay(true);
    let mut received = Vec::with_capacity(4096);
    while stream
        .read_buf(&mut received)
        .await
        .is_ok_and(|read| read > 0)
    {
        let Some((seq, length)) = parse(&received) else {
            continue;
        };
        received.drain(..length);
        record(&arrivals, seq);
        match behaviour {
            Behaviour::Hang => continue,
            Behaviour::RespondAfter(pause) => tokio::time::sleep(pause).await,
            Behaviour::Respond => {}
        }
        if stream.write_all(RESPONSE).await.is_err() {
            return;
        }
    }
}

fn record(arrivals: &Mutex<Arrivals>, seq: Option<u64>) {
    let now = Instant::now();
    let mut arrivals = lock(arrivals);
    let Some(seq) = seq.filter(|seq| arrivals.expected.contains(seq)) else {
        return;
    };
    arrivals.last = Some(now);
    let arrived = arrivals.first.len();
    arrivals.first.entry(seq).or_insert(now);
    if arrivals.first.len() == arrived {
        arrivals.repeated += 1;
    }
}

/// Returns the number and the length of the request at the start of `received`, or `None` if it is not complete.
fn parse(received: &[u8]) -> Option<(Option<u64>, usize)> {
    let mut headers = [httparse::EMPTY_HEADER; MAX_HEADERS];
    let mut head = httparse::Request::new(&mut headers);
    let start = head.parse(received).ok()?;
    let httparse::Status::Complete(start) = start else {
        return None;
    };
    let length = head
        .headers
        .iter()
        .find(|header| header.name.eq_ignore_ascii_case("content-length"));
    let length = length.and_then(|header| std::str::from_utf8(header.value).ok()?.parse().ok());
    let end = start + length.unwrap_or(0);
    let seq = head.path.and_then(|path| path.split_once("?seq="));
    (received.len() >= end).then(|| (seq.and_then(|(_, seq)| seq.parse().ok()), end))
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::{Arrivals, lock, parse, record};

    #[test]
    fn a_webhook_is_known_by_its_number() {
        let text = b"POST /?seq=17 HTTP/1.1\r\ncontent-length: 2\r\n\r\n{}";
        assert_eq!(parse(text), Some((Some(17), text.len())));
        assert_eq!(parse(&text[..text.len() - 1]), None);
        let other = b"POST / HTTP/1.1\r\n\r\n";
        assert_eq!(parse(other), Some((None, other.len())));
    }

    #[test]
    fn only_expected_webhooks_count_and_a_second_arrival_is_repeated() {
        let arrivals = Mutex::new(Arrivals {
            expected: 10..12,
            ..Arrivals::default()
        });
        for seq in [Some(10), Some(11), Some(10), Some(9), Some(12), None] {
            record(&arrivals, seq);
        }
        let arrivals = lock(&arrivals);
        assert_eq!(arrivals.first.len(), 2);
        assert_eq!(arrivals.repeated, 1);
    }
}
