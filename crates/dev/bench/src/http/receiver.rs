//! The receiver of webhooks, which records when they arrive.

use std::collections::HashMap;
use std::net::Ipv4Addr;
use std::ops::Range;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use rig::receiver::{self, Reply, Request};
use rig::sync::lock;

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

/// Hosts, each with an address of its own. Records when webhooks with `?seq=N` arrive.
pub(crate) struct Receiver {
    hosts: HashMap<Ipv4Addr, receiver::Receiver>,
    arrivals: Arc<Mutex<Arrivals>>,
}

impl Receiver {
    /// Starts hosts at these loopback addresses, on threads of their own, so that the client delays no arrival.
    pub(crate) fn start(hosts: &[(Ipv4Addr, Behaviour)]) -> anyhow::Result<Self> {
        let arrivals = Arc::<Mutex<Arrivals>>::default();
        let hosts = hosts.iter().map(|(host, behaviour)| {
            let (shared, behaviour) = (Arc::clone(&arrivals), *behaviour);
            let handle = move |request: &Request<'_>| respond(&shared, behaviour, request);
            Ok((*host, receiver::Receiver::open_at(*host, handle)?))
        });
        Ok(Self {
            hosts: hosts.collect::<anyhow::Result<_>>()?,
            arrivals,
        })
    }

    /// The URL of webhook `seq` at a host.
    pub(crate) fn url(&self, host: Ipv4Addr, seq: u64) -> String {
        let url = self.unrecorded_url(host);
        format!("{url}?seq={seq}")
    }

    /// A URL at a host whose arrivals are not recorded.
    pub(crate) fn unrecorded_url(&self, host: Ipv4Addr) -> String {
        let receiver = self.hosts.get(&host);
        receiver.map_or_else(String::new, |receiver| receiver.url("/"))
    }

    /// Forgets earlier arrivals, and records those of `expected`.
    pub(crate) fn expect(&self, expected: Range<u64>) {
        *lock(&self.arrivals) = Arrivals {
            expected,
            ..Arrivals::default()
        };
    }

    /// How many of the expected webhooks arrived.
    pub(crate) fn arrived(&self) -> usize {
        lock(&self.arrivals).first.len()
    }

    /// When the last webhook arrived, a repeated one included.
    pub(crate) fn last_arrival(&self) -> Option<Instant> {
        lock(&self.arrivals).last
    }

    /// When each expected webhook arrived first.
    pub(crate) fn first_arrivals(&self) -> HashMap<u64, Instant> {
        lock(&self.arrivals).first.clone()
    }

    /// How many webhooks arrived that had arrived before.
    pub(crate) fn repeated(&self) -> usize {
        lock(&self.arrivals).repeated
    }
}

fn respond(arrivals: &Mutex<Arrivals>, behaviour: Behaviour, request: &Request<'_>) -> Reply {
    let seq = request.path.split_once("?seq=");
    record(arrivals, seq.and_then(|(_, seq)| seq.parse().ok()));
    match behaviour {
        Behaviour::Hang => return Reply::Hang,
        Behaviour::RespondAfter(pause) => std::thread::sleep(pause),
        Behaviour::Respond => {}
    }
    Reply::status("200 OK")
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

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use rig::receiver::{Reply, Request};

    use super::{Arrivals, Behaviour, lock, respond};

    #[test]
    fn only_expected_webhooks_count_and_a_second_arrival_is_repeated() {
        let arrivals = Mutex::new(Arrivals {
            expected: 10..12,
            ..Arrivals::default()
        });
        for path in [
            "/?seq=10", "/?seq=11", "/?seq=10", "/?seq=9", "/?seq=12", "/",
        ] {
            let request = Request {
                path,
                headers: &[],
                body: &[],
            };
            let reply = respond(&arrivals, Behaviour::Respond, &request);
            assert_eq!(reply, Reply::status("200 OK"));
        }
        let arrivals = lock(&arrivals);
        assert_eq!(arrivals.first.len(), 2);
        assert_eq!(arrivals.repeated, 1);
    }
}
