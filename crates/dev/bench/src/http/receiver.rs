//! The receiver of webhooks, which records when they arrive.

use std::collections::HashMap;
use std::net::Ipv4Addr;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use anyhow::Result;
use rig::{Reply, Request, lock};

#[derive(Debug, Clone, Copy)]
pub(crate) enum Behaviour {
    Respond,
    RespondAfter(Duration),
    /// Accepts and never responds.
    Hang,
}

#[derive(Debug, Default)]
pub(crate) struct Arrivals {
    /// When each webhook arrived first.
    pub(crate) first: HashMap<u64, Instant>,
    /// How many arrived that had arrived before.
    pub(crate) repeated: usize,
    /// When the last one arrived, a repeated one included.
    pub(crate) last: Option<Instant>,
}

/// Hosts, each with an address of its own. Records when webhooks with `?seq=N` arrive.
pub(crate) struct Receiver {
    hosts: Vec<rig::Receiver>,
    arrivals: Arc<Mutex<Arrivals>>,
}

impl Receiver {
    /// Starts hosts that behave alike, at loopback addresses of this network, on threads of their own, so that the client
    /// delays no arrival.
    pub(crate) fn start(network: u8, count: u8, behaviour: Behaviour) -> Result<Self> {
        let arrivals = Arc::<Mutex<Arrivals>>::default();
        let hosts = (1..=count).map(|host| {
            let shared = Arc::clone(&arrivals);
            let handle = move |request: &Request<'_>| respond(&shared, behaviour, request);
            rig::Receiver::open_at(Ipv4Addr::new(127, 0, network, host), handle)
        });
        Ok(Self {
            hosts: hosts.collect::<Result<_>>()?,
            arrivals,
        })
    }

    /// The URL of webhook `seq`. Each host gets as many as the others.
    pub(crate) fn url(&self, seq: u64) -> String {
        format!("{}?seq={seq}", self.unrecorded_url(seq))
    }

    /// The same without a record of its arrival.
    pub(crate) fn unrecorded_url(&self, seq: u64) -> String {
        let index = usize::try_from(seq).unwrap_or_default() % self.hosts.len().max(1);
        let host = self.hosts.get(index);
        host.map_or_else(String::new, |host| host.url("/"))
    }

    pub(crate) fn arrivals(&self) -> MutexGuard<'_, Arrivals> {
        lock(&self.arrivals)
    }
}

fn respond(arrivals: &Mutex<Arrivals>, behaviour: Behaviour, request: &Request<'_>) -> Reply {
    let now = Instant::now();
    let seq = request.path.split_once("?seq=");
    if let Some(seq) = seq.and_then(|(_, seq)| seq.parse().ok()) {
        let mut arrivals = lock(arrivals);
        arrivals.last = Some(now);
        let arrived = arrivals.first.len();
        arrivals.first.entry(seq).or_insert(now);
        if arrivals.first.len() == arrived {
            arrivals.repeated += 1;
        }
    }
    match behaviour {
        Behaviour::Hang => return Reply::Hang,
        Behaviour::RespondAfter(pause) => std::thread::sleep(pause),
        Behaviour::Respond => {}
    }
    Reply::status("200 OK")
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use rig::{Reply, Request};

    use super::{Arrivals, Behaviour, lock, respond};

    #[test]
    fn only_webhooks_with_a_number_count_and_a_second_arrival_is_repeated() {
        let arrivals = Mutex::new(Arrivals::default());
        for path in ["/?seq=10", "/?seq=11", "/?seq=10", "/"] {
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
