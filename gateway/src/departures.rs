//! Answers on their way to callers, counted in bytes.
//!
//! A service holds an answer in its memory until the caller has taken it. So whoever asks for long answers and
//! does not read them has a share of that memory, and no more than a share.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use http_kit::client_network;

/// An answer of so few bytes leaves at once and is not counted.
const SHORT: u64 = 16 * 1024;

/// How many bytes there may be, and where there are some.
#[derive(Debug)]
pub(crate) struct Departures {
    room: u64,
    taken: Mutex<Taken>,
}

#[derive(Debug, Default)]
struct Taken {
    all: u64,
    by_network: HashMap<IpAddr, u64>,
}

impl Departures {
    /// Room for so many bytes, half of which one client's network may have.
    pub(crate) fn new(room: u64) -> Arc<Self> {
        Arc::new(Self {
            room,
            taken: Mutex::default(),
        })
    }

    /// Counts an answer until the departure is dropped; `None` when there is no room for it. An answer longer
    /// than all of the room finds it when it is the only one.
    pub(crate) fn admit(self: &Arc<Self>, client: IpAddr, bytes: u64) -> Option<Departure> {
        let bytes = if bytes <= SHORT { 0 } else { bytes };
        let network = client_network(client);
        if bytes > 0 {
            self.enter(network, bytes)?;
        }
        Some(Departure {
            departures: Arc::clone(self),
            network,
            bytes,
        })
    }

    fn enter(&self, network: IpAddr, bytes: u64) -> Option<()> {
        let mut taken = self.taken();
        let own = taken.by_network.get(&network).copied().unwrap_or_default();
        let fits = |taken: u64, room: u64| taken == 0 || taken.saturating_add(bytes) <= room;
        if !fits(own, self.room / 2) || !fits(taken.all, self.room) {
            return None;
        }
        taken.all = taken.all.saturating_add(bytes);
        taken.by_network.insert(network, own.saturating_add(bytes));
        Some(())
    }

    fn leave(&self, network: IpAddr, bytes: u64) {
        let mut taken = self.taken();
        taken.all = taken.all.saturating_sub(bytes);
        if let Some(own) = taken.by_network.get_mut(&network) {
            *own = own.saturating_sub(bytes);
            if *own == 0 {
                taken.by_network.remove(&network);
            }
        }
    }

    fn taken(&self) -> MutexGuard<'_, Taken> {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// An answer that is counted.
#[derive(Debug)]
pub(crate) struct Departure {
    departures: Arc<Departures>,
    network: IpAddr,
    bytes: u64,
}

impl Drop for Departure {
    fn drop(&mut self) {
        if self.bytes > 0 {
            self.departures.leave(self.network, self.bytes);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::net::IpAddr;

    use super::Departures;

    const MIB: u64 = 1024 * 1024;

    fn client(last: u8) -> IpAddr {
        [203, 0, 113, last].into()
    }

    #[test]
    fn a_network_has_half_of_the_room_and_others_have_the_rest() {
        let departures = Departures::new(10 * MIB);
        let first = departures.admit(client(1), 3 * MIB);
        assert!(first.is_some());
        assert!(departures.admit(client(1), 3 * MIB).is_none());
        let _second = departures.admit(client(2), 5 * MIB).unwrap();
        assert!(departures.admit(client(3), 3 * MIB).is_none());
        drop(first);
        assert!(departures.admit(client(1), 3 * MIB).is_some());
    }

    #[test]
    fn the_addresses_of_an_ipv6_network_share_their_half() {
        let departures = Departures::new(10 * MIB);
        let client = |text: &str| text.parse().unwrap();
        let _first = departures.admit(client("2001:db8::1"), 4 * MIB).unwrap();
        assert!(departures.admit(client("2001:db8::2"), 4 * MIB).is_none());
        assert!(
            departures
                .admit(client("2001:db8:0:1::1"), 4 * MIB)
                .is_some()
        );
    }

    #[test]
    fn one_that_is_refused_gives_nothing_back() {
        let departures = Departures::new(10 * MIB);
        let _first = departures.admit(client(1), 4 * MIB).unwrap();
        for _ in 0..3 {
            assert!(departures.admit(client(1), 4 * MIB).is_none());
        }
    }

    #[test]
    fn the_longest_answer_finds_room_alone_and_a_short_one_always() {
        let departures = Departures::new(10 * MIB);
        let longest = departures.admit(client(1), 50 * MIB).unwrap();
        assert!(departures.admit(client(2), MIB).is_none());
        assert!(departures.admit(client(1), 1_000).is_some());
        drop(longest);
        assert!(departures.admit(client(2), MIB).is_some());
        assert!(departures.taken().by_network.is_empty());
    }
}
