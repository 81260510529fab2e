//! Capacity that client networks share.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::client_network;

/// A number of units, such as requests, connections or bytes, that client networks share.
///
/// A network may hold at most a third as many units as remain free. So one network can take a quarter of them,
/// the next one a quarter of the rest, and so on: ten networks that take all they can leave 5 % for others.
#[derive(Debug)]
pub struct NetworkShares {
    capacity: u64,
    held: Mutex<Held>,
}

/// How many units must remain free for each unit that a network holds.
const FREE_PER_HELD: u64 = 3;

#[derive(Debug, Default)]
struct Held {
    total: u64,
    /// Only networks that hold something.
    by_network: HashMap<IpAddr, u64>,
}

/// Why a network does not get units.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ShareError {
    /// The network holds as much as it may.
    #[error("the client network holds its whole share")]
    Network,
    /// All networks together hold too much.
    #[error("the capacity is exhausted")]
    Capacity,
}

impl NetworkShares {
    /// Creates a capacity of this many units.
    #[must_use]
    pub fn new(capacity: u64) -> Arc<Self> {
        Arc::new(Self {
            capacity,
            held: Mutex::default(),
        })
    }

    /// Takes units for the network of a client, until the share is dropped.
    ///
    /// Whatever is free is enough for a network that holds nothing, and a capacity of which nothing is held
    /// for a request of any size.
    ///
    /// # Errors
    /// There are too few units, for this network or for all of them.
    pub fn acquire(self: &Arc<Self>, client: IpAddr, units: u64) -> Result<Share, ShareError> {
        let network = client_network(client);
        self.add(network, units)?;
        Ok(Share {
            shares: Arc::clone(self),
            network,
            units,
        })
    }

    /// How many units all networks hold together.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.held().total
    }

    fn add(&self, network: IpAddr, units: u64) -> Result<(), ShareError> {
        let mut held = self.held();
        let total = held.total.saturating_add(units);
        if total > self.capacity && held.total > 0 {
            return Err(ShareError::Capacity);
        }
        let before = held.by_network.get(&network).copied().unwrap_or_default();
        let own = before.saturating_add(units);
        let free = self.capacity.saturating_sub(total);
        if before > 0 && own.saturating_mul(FREE_PER_HELD) > free {
            return Err(ShareError::Network);
        }
        if units > 0 {
            held.total = total;
            held.by_network.insert(network, own);
        }
        Ok(())
    }

    fn remove(&self, network: IpAddr, units: u64) {
        let mut held = self.held();
        held.total = held.total.saturating_sub(units);
        if let Some(own) = held.by_network.get_mut(&network) {
            *own = own.saturating_sub(units);
            if *own == 0 {
                held.by_network.remove(&network);
            }
        }
    }

    fn held(&self) -> MutexGuard<'_, Held> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Units that a network holds. Dropping it frees them.
#[derive(Debug)]
pub struct Share {
    shares: Arc<NetworkShares>,
    network: IpAddr,
    units: u64,
}

impl Share {
    /// Takes more units, until it holds at least this many.
    ///
    /// # Errors
    /// There are too few units. Those that it holds remain.
    pub fn grow_to(&mut self, units: u64) -> Result<(), ShareError> {
        let more = units.saturating_sub(self.units);
        self.shares.add(self.network, more)?;
        self.units += more;
        Ok(())
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        self.shares.remove(self.network, self.units);
    }
}

#[cfg(test)]
mod tests {
    use std::net::IpAddr;
    use std::sync::Arc;

    use super::{NetworkShares, Share, ShareError};

    fn client(last: u8) -> IpAddr {
        [203, 0, 113, last].into()
    }

    /// Takes single units until there are no more.
    fn take_all(shares: &Arc<NetworkShares>, client: IpAddr) -> Vec<Share> {
        std::iter::from_fn(|| shares.acquire(client, 1).ok()).collect()
    }

    #[test]
    fn busy_networks_always_leave_something_for_the_next_one() {
        let shares = NetworkShares::new(1024);
        let mut held = vec![take_all(&shares, client(1))];
        assert_eq!(held[0].len(), 256);
        let refused = shares.acquire(client(1), 1).unwrap_err();
        assert_eq!(refused, ShareError::Network);
        for hostile in 2..=10 {
            held.push(take_all(&shares, client(hostile)));
        }
        let rest = take_all(&shares, client(11)).len();
        assert!(rest >= 14, "{rest}");
    }

    #[test]
    fn the_share_of_a_network_shrinks_while_others_are_busy() {
        let shares = NetworkShares::new(32);
        let mut first = take_all(&shares, client(1));
        let second = take_all(&shares, client(2));
        assert_eq!((first.len(), second.len()), (8, 6));
        first.truncate(6);
        assert!(shares.acquire(client(1), 1).is_err());
        drop(second);
        assert!(shares.acquire(client(1), 1).is_ok());
    }

    #[test]
    fn the_last_unit_is_for_a_network_that_holds_none() {
        let shares = NetworkShares::new(1);
        let only = shares.acquire(client(1), 1).unwrap();
        let refused = |last| shares.acquire(client(last), 1).unwrap_err();
        assert_eq!([refused(1), refused(2)], [ShareError::Capacity; 2]);
        drop(only);
        assert!(shares.acquire(client(2), 1).is_ok());
    }

    #[test]
    fn a_share_grows_within_the_same_limits() {
        let shares = NetworkShares::new(100);
        let mut share = shares.acquire(client(1), 10).unwrap();
        assert_eq!(share.grow_to(25), Ok(()));
        assert_eq!(share.grow_to(30), Err(ShareError::Network));
        let _other = shares.acquire(client(2), 70).unwrap();
        assert_eq!(share.grow_to(35), Err(ShareError::Capacity));
        drop(share);
        assert!(shares.acquire(client(3), 30).is_ok());
    }

    #[test]
    fn what_exceeds_the_capacity_is_allowed_alone() {
        let shares = NetworkShares::new(100);
        let all = shares.acquire(client(1), 1_000).unwrap();
        assert!(shares.acquire(client(2), 1).is_err());
        drop(all);
        assert!(shares.acquire(client(2), 1).is_ok());
    }

    #[test]
    fn addresses_of_one_ipv6_network_have_one_share() {
        let shares = NetworkShares::new(10);
        let client = |text: &str| text.parse().unwrap();
        let _first = shares.acquire(client("2001:db8::1"), 2).unwrap();
        assert!(shares.acquire(client("2001:db8::2"), 2).is_err());
        assert!(shares.acquire(client("2001:db8:0:1::1"), 2).is_ok());
    }

    #[test]
    fn networks_without_units_are_forgotten() {
        let shares = NetworkShares::new(10);
        let held: Vec<_> = (1..=3)
            .map(|last| shares.acquire(client(last), 2))
            .collect();
        assert_eq!(shares.held().by_network.len(), 3);
        drop(held);
        assert!(shares.held().by_network.is_empty());
        assert_eq!(shares.held().total, 0);
    }
}
