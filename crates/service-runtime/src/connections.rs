//! The connections of a port, which client networks share.

use std::collections::{BTreeMap, HashMap};
use std::net::{IpAddr, Ipv4Addr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use actix_service::{Service as _, ServiceFactory, apply_fn_factory};
use actix_web::rt::net::TcpStream;
use app_config::Networks;
use http_kit::client_network;
use tokio_util::sync::CancellationToken;

/// A limited number of connections.
///
/// A network may have as many as no other network needs. At the limit, a connection of a network with fewer
/// connections displaces the newest one of the network with the most, which is closed. So no network can keep
/// others from connecting.
#[derive(Debug)]
pub(crate) struct Connections {
    limit: usize,
    unlimited: Networks,
    open: Mutex<Open>,
}

#[derive(Debug, Default)]
struct Open {
    total: usize,
    next_id: u64,
    /// What closes the connections of each network, oldest first.
    by_network: HashMap<IpAddr, BTreeMap<u64, CancellationToken>>,
}

impl Connections {
    /// Allows `limit` connections. Peers in `unlimited` networks are not counted.
    pub(crate) fn new(limit: usize, unlimited: Networks) -> Arc<Self> {
        Arc::new(Self {
            limit,
            unlimited,
            open: Mutex::default(),
        })
    }

    /// Allows a connection until the permit is dropped; `None` when its network has its share.
    fn admit(self: &Arc<Self>, peer: IpAddr) -> Option<Permit> {
        let mut permit = Permit::default();
        if !self.unlimited.contains(peer) {
            let network = client_network(peer);
            let id = self.add(network, permit.displaced.clone())?;
            permit.entry = Some(Entry {
                connections: Arc::clone(self),
                network,
                id,
            });
        }
        Some(permit)
    }

    fn add(&self, network: IpAddr, displaced: CancellationToken) -> Option<u64> {
        let mut open = self.open();
        if open.total >= self.limit {
            let own = open.by_network.get(&network).map_or(0, BTreeMap::len);
            let most = open.by_network.values_mut().max_by_key(|ids| ids.len())?;
            // Afterwards, the displaced network must not have fewer than this one.
            if most.len() <= own + 1 {
                metrics::counter!("http_connections_refused_total").increment(1);
                return None;
            }
            if let Some((_, newest)) = most.pop_last() {
                metrics::counter!("http_connections_displaced_total").increment(1);
                newest.cancel();
                open.total -= 1;
            }
        }
        let id = open.next_id;
        open.next_id += 1;
        open.total += 1;
        let ids = open.by_network.entry(network).or_default();
        ids.insert(id, displaced);
        Some(id)
    }

    fn remove(&self, network: IpAddr, id: u64) {
        let mut open = self.open();
        if let Some(ids) = open.by_network.get_mut(&network) {
            let was_open = ids.remove(&id).is_some();
            if ids.is_empty() {
                open.by_network.remove(&network);
            }
            open.total -= usize::from(was_open);
        }
    }

    fn open(&self) -> MutexGuard<'_, Open> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The permit of an open connection.
#[derive(Debug, Default)]
struct Permit {
    /// Cancelled when the connection must close.
    displaced: CancellationToken,
    /// `None` if it is not counted.
    entry: Option<Entry>,
}

#[derive(Debug)]
struct Entry {
    connections: Arc<Connections>,
    network: IpAddr,
    id: u64,
}

impl Drop for Entry {
    fn drop(&mut self) {
        self.connections.remove(self.network, self.id);
    }
}

/// A service that serves only connections that get a permit, and closes others before TLS and HTTP.
pub(crate) fn limited<F>(
    connections: Option<Arc<Connections>>,
    service: F,
) -> impl ServiceFactory<TcpStream, Config = (), Response = (), Error = F::Error, InitError = ()>
where
    F: ServiceFactory<TcpStream, Config = (), Response = (), InitError = ()>,
{
    apply_fn_factory(service, move |socket: TcpStream, service: &F::Service| {
        // Only a socket that has just been closed has no address.
        let peer = socket.peer_addr().map(|peer| peer.ip());
        let peer = peer.unwrap_or(Ipv4Addr::UNSPECIFIED.into());
        let permit = match &connections {
            Some(connections) => connections.admit(peer),
            None => Some(Permit::default()),
        };
        let serving = permit.map(|permit| (service.call(socket), permit));
        async move {
            let Some((serving, permit)) = serving else {
                return Ok(());
            };
            let served = permit.displaced.run_until_cancelled(serving).await;
            served.unwrap_or(Ok(()))
        }
    })
}

#[cfg(test)]
mod tests {
    use std::net::IpAddr;
    use std::sync::Arc;

    use app_config::{Networks, SettingValue as _};

    use super::{Connections, Permit};

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
        let displaced = permits
            .iter()
            .filter(|permit| permit.displaced.is_cancelled());
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
        large.retain(|permit| !permit.displaced.is_cancelled());
        assert!(connections.admit(peer(3)).is_none());
        drop(large);
        assert!(connections.admit(peer(3)).is_some());
        drop(other);
        assert!(connections.open().by_network.is_empty());
        assert_eq!(connections.open().total, 0);
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
