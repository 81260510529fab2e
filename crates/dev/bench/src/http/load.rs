//! Sends many requests, as fast as possible or at given times.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use futures_util::stream::{self, FuturesUnordered, Stream, StreamExt as _, TryStreamExt as _};
use tokio::sync::{Mutex, mpsc};

use super::connection::Connection;

pub(crate) const CONNECTIONS: usize = 32;

/// When requests are sent.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Pace {
    /// Each connection sends its next request when it has the response to the last one.
    Closed { connections: usize },
    /// Requests are due at fixed times, however long the responses take.
    Open {
        /// Requests per second.
        rate: f64,
    },
}

impl Pace {
    /// As fast as [`CONNECTIONS`] connections can.
    pub(crate) const FULL: Self = Self::Closed {
        connections: CONNECTIONS,
    };
}

#[derive(Debug)]
pub(crate) struct Call {
    /// When it was due. With [`Pace::Closed`] that is when it was sent.
    pub(crate) due: Instant,
    pub(crate) end: Instant,
    pub(crate) body: Vec<u8>,
}

impl Call {
    /// The time from when it was due to the response. It includes the time that it waited for a connection.
    pub(crate) fn latency(&self) -> Duration {
        self.end.saturating_duration_since(self.due)
    }
}

/// Sends `requests` to a server. Returns the calls in the order of the requests, and fails at the first that returns an error
/// status.
pub(crate) async fn send<R: AsRef<[u8]>>(
    address: SocketAddr,
    requests: &[R],
    pace: Pace,
) -> Result<Vec<Call>> {
    let connections = match pace {
        Pace::Closed { connections } => connections,
        Pace::Open { .. } => CONNECTIONS,
    };
    let mut open = Vec::new();
    for _ in 0..connections.min(requests.len()) {
        open.push(Connection::open(address).await?);
    }
    let due = match pace {
        Pace::Closed { .. } => stream::repeat_with(Instant::now).boxed_local(),
        Pace::Open { rate } => {
            let mut clock = start_clock(requests.len(), rate);
            stream::poll_fn(move |context| clock.poll_recv(context)).boxed_local()
        }
    };
    // Connections take turns.
    let source = Mutex::new(stream::iter(requests).zip(due).enumerate());
    let senders: FuturesUnordered<_> = open
        .into_iter()
        .map(|connection| send_each(connection, &source))
        .collect();
    let sent: Vec<Vec<(usize, Call)>> = senders.try_collect().await?;
    let mut calls: Vec<(usize, Call)> = sent.into_iter().flatten().collect();
    calls.sort_unstable_by_key(|(index, _)| *index);
    Ok(calls.into_iter().map(|(_, call)| call).collect())
}

/// Sends requests of `source`, each with its number and the time at which it is due.
async fn send_each<'request, R: AsRef<[u8]> + 'request>(
    mut connection: Connection,
    source: &Mutex<impl Stream<Item = (usize, (&'request R, Instant))> + Unpin>,
) -> Result<Vec<(usize, Call)>> {
    let mut calls = Vec::new();
    let next = async || source.lock().await.next().await;
    while let Some((index, (request, due))) = next().await {
        let request = request.as_ref();
        let response = connection.call(request).await?;
        let end = Instant::now();
        ensure!(
            (200..300).contains(&response.status),
            "{} returned {}: {}",
            String::from_utf8_lossy(request)
                .lines()
                .next()
                .unwrap_or_default(),
            response.status,
            String::from_utf8_lossy(&response.body)
        );
        let body = response.body;
        calls.push((index, Call { due, end, body }));
    }
    Ok(calls)
}

/// Sends the time at which each request is due when it has come. A thread does this, because the timers of the runtime are
/// up to a millisecond late.
fn start_clock(count: usize, rate: f64) -> mpsc::UnboundedReceiver<Instant> {
    let (due, receiver) = mpsc::unbounded_channel();
    let interval = Duration::from_secs_f64(1.0 / rate.max(0.001));
    std::thread::spawn(move || {
        let start = Instant::now();
        for index in 0..count {
            let at = start + interval.mul_f64(index as f64);
            std::thread::sleep(at.saturating_duration_since(Instant::now()));
            // The load was cancelled.
            if due.send(at).is_err() {
                return;
            }
        }
    });
    receiver
}

#[cfg(test)]
mod tests {
    use std::net::{Ipv4Addr, SocketAddr};
    use std::time::Duration;

    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::net::TcpListener;

    use super::{Pace, send};
    use crate::http::request;

    /// Handles one connection at a time, each request in `pause`.
    async fn slow_server(pause: Duration) -> SocketAddr {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let address = listener.local_addr().unwrap();
        tokio::spawn(async move {
            let busy = std::sync::Arc::new(tokio::sync::Mutex::new(()));
            loop {
                let (mut stream, _) = listener.accept().await.unwrap();
                let busy = busy.clone();
                tokio::spawn(async move {
                    let mut buffer = [0; 1024];
                    while stream.read(&mut buffer).await.is_ok_and(|read| read > 0) {
                        let _guard = busy.lock().await;
                        tokio::time::sleep(pause).await;
                        let response = b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n";
                        stream.write_all(response).await.unwrap();
                    }
                });
            }
        });
        address
    }

    #[tokio::test]
    async fn an_open_loop_counts_the_time_in_a_queue() {
        let address = slow_server(Duration::from_millis(20)).await;
        let requests = vec![request("GET", "/", None, None); 10];
        let calls = send(address, &requests, Pace::Open { rate: 1000.0 }).await;
        let calls = calls.unwrap();
        assert_eq!(calls.len(), 10);
        // Ten requests were due within ten milliseconds, and the server needs 20 for each.
        let slowest = calls.iter().map(super::Call::latency).max().unwrap();
        assert!(slowest >= Duration::from_millis(180), "{slowest:?}");
    }

    #[tokio::test]
    async fn a_closed_loop_sends_each_request_once() {
        let address = slow_server(Duration::ZERO).await;
        let requests = vec![request("GET", "/", None, None); 100];
        let calls = send(address, &requests, Pace::Closed { connections: 4 }).await;
        assert_eq!(calls.unwrap().len(), 100);
    }
}
