//! Limits the bytes of responses that callers have not read yet.
//!
//! A service keeps a response in memory until the caller has read it. So a client network that requests
//! long responses and does not read them gets only a share of that memory.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use http_kit::client_network;

/// Responses up to this length are sent at once and not counted.
const UNCOUNTED: u64 = 16 * 1024;

/// The limit on buffered bytes, and the bytes in use.
#[derive(Debug)]
pub(crate) struct ResponseBudget {
    limit: u64,
    used: Mutex<Usage>,
}

#[derive(Debug, Default)]
struct Usage {
    total: u64,
    by_network: HashMap<IpAddr, u64>,
}

impl ResponseBudget {
    /// A budget of `limit` bytes, of which one client network may use half.
    pub(crate) fn new(limit: u64) -> Arc<Self> {
        Arc::new(Self {
            limit,
            used: Mutex::default(),
        })
    }

    /// Counts a response until the permit is dropped; `None` when it exceeds the budget. A response that is
    /// longer than the whole budget is allowed when it is the only one.
    pub(crate) fn acquire(self: &Arc<Self>, client: IpAddr, bytes: u64) -> Option<ResponsePermit> {
        let bytes = if bytes <= UNCOUNTED { 0 } else { bytes };
        let network = client_network(client);
        if bytes > 0 {
            self.add(network, bytes)?;
        }
        Some(ResponsePermit {
            budget: Arc::clone(self),
            network,
            bytes,
        })
    }

    fn add(&self, network: IpAddr, bytes: u64) -> Option<()> {
        let mut used = self.used();
        let own = used.by_network.get(&network).copied().unwrap_or_default();
        let fits = |used: u64, limit: u64| used == 0 || used.saturating_add(bytes) <= limit;
        if !fits(own, self.limit / 2) || !fits(used.total, self.limit) {
            return None;
        }
        used.total = used.total.saturating_add(bytes);
        used.by_network.insert(network, own.saturating_add(bytes));
        Some(())
    }

    fn remove(&self, network: IpAddr, bytes: u64) {
        let mut used = self.used();
        used.total = used.total.saturating_sub(bytes);
        if let Some(own) = used.by_network.get_mut(&network) {
            *own = own.saturating_sub(bytes);
            if *own == 0 {
                used.by_network.remove(&network);
            }
        }
    }

    fn used(&self) -> MutexGuard<'_, Usage> {
        self.used.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The share of one response.
#[derive(Debug)]
pub(crate) struct ResponsePermit {
    budget: Arc<ResponseBudget>,
    network: IpAddr,
    bytes: u64,
}

impl Drop for ResponsePermit {
    fn drop(&mut self) {
        if self.bytes > 0 {
            self.budget.remove(self.network, self.bytes);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::net::IpAddr;

    use super::ResponseBudget;

    const MIB: u64 = 1024 * 1024;

    fn client(last: u8) -> IpAddr {
        [203, 0, 113, last].into()
    }

    #[test]
    fn one_network_may_use_half_of_the_budget() {
        let budget = ResponseBudget::new(10 * MIB);
        let first = budget.acquire(client(1), 3 * MIB);
        assert!(first.is_some());
        assert!(budget.acquire(client(1), 3 * MIB).is_none());
        let _second = budget.acquire(client(2), 5 * MIB).unwrap();
        assert!(budget.acquire(client(3), 3 * MIB).is_none());
        drop(first);
        assert!(budget.acquire(client(1), 3 * MIB).is_some());
    }

    #[test]
    fn addresses_of_one_ipv6_network_share_their_half() {
        let budget = ResponseBudget::new(10 * MIB);
        let client = |text: &str| text.parse().unwrap();
        let _first = budget.acquire(client("2001:db8::1"), 4 * MIB).unwrap();
        assert!(budget.acquire(client("2001:db8::2"), 4 * MIB).is_none());
        assert!(budget.acquire(client("2001:db8:0:1::1"), 4 * MIB).is_some());
    }

    #[test]
    fn a_refused_response_releases_nothing() {
        let budget = ResponseBudget::new(10 * MIB);
        let _first = budget.acquire(client(1), 4 * MIB).unwrap();
        for _ in 0..3 {
            assert!(budget.acquire(client(1), 4 * MIB).is_none());
        }
    }

    #[test]
    fn an_oversized_response_is_allowed_alone_and_a_short_one_always() {
        let budget = ResponseBudget::new(10 * MIB);
        let longest = budget.acquire(client(1), 50 * MIB).unwrap();
        assert!(budget.acquire(client(2), MIB).is_none());
        assert!(budget.acquire(client(1), 1_000).is_some());
        drop(longest);
        assert!(budget.acquire(client(2), MIB).is_some());
        assert!(budget.used().by_network.is_empty());
    }
}
