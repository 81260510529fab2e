//! The connections of a port, which client networks share.

use std::cell::RefCell;
use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use app_config::Networks;
use fairness::FairQueue;
use http_kit::client_network;
use parking_lot::Mutex;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// The time from one new connection of a network to the next, once it has opened [`AT_ONCE`]. A thread serves its
/// connections in the order in which they become ready, so without a pause hundreds of new ones would come before
/// the next request of another network.
const PAUSE: Duration = Duration::from_micros(500);
const AT_ONCE: u32 = 32;

/// A limited number of connections.
///
/// A network may have as many as no other network needs. At the limit, a connection of a network with fewer
/// connections displaces the newest one of the network with the most, which is closed. So no network can keep
/// others from connecting. Many new connections of one network are served one after the other.
pub(crate) struct Connections {
    unlimited: Networks,
    open: Mutex<Open>,
}

struct Open {
    /// What closes each connection. They stay in the queue, because all of them are served at the same time.
    connections: FairQueue<IpAddr, CancellationToken>,
    paces: HashMap<IpAddr, Pace>,
}

/// When the next connection of a network is due, if all keep the pause.
#[derive(Default)]
struct Pace(Option<Instant>);

impl Pace {
    fn schedule(&mut self, now: Instant) -> Instant {
        let due = self.0.map_or(now, |next| next.max(now));
        self.0 = Some(due + PAUSE);
        let early = due.checked_sub((AT_ONCE - 1) * PAUSE);
        early.map_or(due, |early| early.max(now))
    }
}

impl Connections {
    /// Allows `limit` connections. Peers in `unlimited` networks are not counted.
    pub(crate) fn new(limit: usize, unlimited: Networks) -> Arc<Self> {
        let open = Open {
            connections: FairQueue::new(limit),
            paces: HashMap::new(),
        };
        Arc::new(Self {
            unlimited,
            open: Mutex::new(open),
        })
    }

    /// Allows a connection until the permit is dropped; `None` when its network has its share.
    pub(crate) fn admit(self: &Arc<Self>, peer: IpAddr) -> Option<Permit> {
        let mut permit = Permit::default();
        if self.unlimited.contains(peer) {
            return Some(permit);
        }
        let network = client_network(peer);
        let mut open = self.open.lock();
        let pushed = open.connections.push(&network, permit.closed.clone());
        let Ok((number, displaced)) = pushed else {
            metrics::counter!("http_connections_refused_total").increment(1);
            return None;
        };
        if let Some(newest) = displaced {
            metrics::counter!("http_connections_displaced_total").increment(1);
            newest.cancel();
        }
        let pace = open.paces.entry(network).or_default();
        permit.start = Some(pace.schedule(Instant::now()));
        permit.entry = RefCell::new(Some(Entry {
            connections: Arc::clone(self),
            network,
            number,
        }));
        Some(permit)
    }
}

#[derive(Default)]
pub(crate) struct Permit {
    /// Cancelled when the connection must close.
    pub(crate) closed: CancellationToken,
    /// When the connection is served; `None` if at once.
    pub(crate) start: Option<Instant>,
    /// `None` if it is not counted.
    pub(crate) entry: RefCell<Option<Entry>>,
}

pub(crate) struct Entry {
    connections: Arc<Connections>,
    network: IpAddr,
    number: u64,
}

impl Drop for Entry {
    fn drop(&mut self) {
        let mut open = self.connections.open.lock();
        open.connections.remove(&self.network, self.number);
        if open.connections.total_of(&self.network) == 0 {
            open.paces.remove(&self.network);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::net::IpAddr;
    use std::sync::Arc;

    use app_config::{Networks, SettingValue as _};
    use tokio::time::Instant;

    use super::{AT_ONCE, Connections, PAUSE, Pace, Permit};

    fn connections(limit: usize) -> Arc<Connections> {
        Connections::new(limit, Networks::parse("10.0.0.0/8").unwrap())
    }

    fn peer(last: u8) -> IpAddr {
        [203, 0, 113, last].into()
    }

    fn open(connections: &Arc<Connections>, last: u8, number: usize) -> Vec<Permit> {
        let permits = (0..number).filter_map(|_| connections.admit(peer(last)));
        permits.collect()
    }

    fn displaced(permits: &[Permit]) -> usize {
        let displaced = permits.iter().filter(|permit| permit.closed.is_cancelled());
        displaced.count()
    }

    #[test]
    fn one_network_may_have_every_connection_that_no_other_needs() {
        let connections = connections(5);
        let first = open(&connections, 1, 10);
        assert_eq!((first.len(), displaced(&first)), (5, 0));
    }

    #[test]
    fn other_networks_displace_the_newest_connections_of_the_largest() {
        let connections = connections(6);
        let large = open(&connections, 1, 6);
        let second = open(&connections, 2, 10);
        assert_eq!((second.len(), displaced(&large)), (3, 3));
        assert_eq!(displaced(&large[..3]), 0);
        let third = open(&connections, 3, 10);
        assert_eq!(third.len(), 2);
        assert_eq!((displaced(&large), displaced(&second)), (4, 1));
    }

    #[test]
    fn a_network_keeps_its_only_connection() {
        let connections = connections(2);
        let (first, second) = (open(&connections, 1, 1), open(&connections, 2, 1));
        assert!(connections.admit(peer(3)).is_none());
        assert_eq!(displaced(&first) + displaced(&second), 0);
    }

    #[test]
    fn a_closed_connection_makes_space_and_a_displaced_one_counts_once() {
        let connections = connections(2);
        let mut large = open(&connections, 1, 2);
        let other = open(&connections, 2, 1);
        large.retain(|permit| !permit.closed.is_cancelled());
        assert!(connections.admit(peer(3)).is_none());
        drop(large);
        assert!(connections.admit(peer(3)).is_some());
        drop(other);
        assert!(connections.open.lock().connections.total() == 0);
        assert!(connections.open.lock().paces.is_empty());
    }

    #[test]
    fn many_new_connections_of_a_network_start_one_after_the_other() {
        let (mut network, now) = (Pace::default(), Instant::now());
        for _ in 0..AT_ONCE {
            assert_eq!(network.schedule(now), now);
        }
        assert_eq!(network.schedule(now), now + PAUSE);
        assert_eq!(network.schedule(now), now + 2 * PAUSE);
        let later = now + (AT_ONCE + 2) * PAUSE;
        for _ in 0..AT_ONCE {
            assert_eq!(network.schedule(later), later);
        }
        assert_eq!(network.schedule(later), later + PAUSE);
    }

    #[test]
    fn unlimited_peers_are_not_counted() {
        let connections = connections(1);
        let proxy = [10, 0, 0, 2].into();
        let proxied: Vec<_> = (0..5).filter_map(|_| connections.admit(proxy)).collect();
        assert_eq!(proxied.len(), 5);
        assert!(connections.admit(peer(1)).is_some());
    }
}
