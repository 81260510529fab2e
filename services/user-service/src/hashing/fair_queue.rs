use std::collections::{HashMap, VecDeque};
use std::fmt;

use crate::client_network::ClientNetwork;

/// A bounded queue that gives each client network the same share of places and turns.
///
/// Networks take turns, so an item waits for at most one item of each other network before the next one of
/// its own network is served. A network may fill the whole queue while no other network needs it. Once the queue
/// is full, a network with a shorter line takes a place from the one with the longest line.
pub(super) struct FairQueue<T> {
    lines: HashMap<ClientNetwork, VecDeque<T>>,
    /// The networks that have a line, in the order of their turns.
    turns: VecDeque<ClientNetwork>,
    len: usize,
    capacity: usize,
}

/// What became of a pushed item.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Push<T> {
    Added,
    /// It was added, and took the place of this item: the newest one of the longest line.
    Displaced(T),
    /// The queue is full, and this network has its share of it.
    ShareUsed(T),
    /// The queue is full, and every network in it has only one item.
    Full(T),
}

impl<T> FairQueue<T> {
    pub(super) fn new(capacity: usize) -> Self {
        Self {
            lines: HashMap::new(),
            turns: VecDeque::new(),
            len: 0,
            capacity,
        }
    }

    /// The number of items.
    pub(super) fn len(&self) -> usize {
        self.len
    }

    pub(super) fn push(&mut self, network: &ClientNetwork, item: T) -> Push<T> {
        if self.len < self.capacity {
            self.add(network, item);
            return Push::Added;
        }
        let own = self.lines.get(network).map_or(0, VecDeque::len);
        match self.longest_line() {
            // Afterwards the displaced network must not have fewer places than this one.
            Some(longest) if longest.len() > own + 1 => match longest.pop_back() {
                Some(displaced) => {
                    self.len -= 1;
                    self.add(network, item);
                    Push::Displaced(displaced)
                }
                None => Push::Full(item),
            },
            _ if own > 0 => Push::ShareUsed(item),
            _ => Push::Full(item),
        }
    }

    /// The next item: the oldest one of the network whose turn it is.
    pub(super) fn pop(&mut self) -> Option<T> {
        let network = self.turns.pop_front()?;
        let line = self.lines.get_mut(&network)?;
        let item = line.pop_front()?;
        self.len -= 1;
        if line.is_empty() {
            self.lines.remove(&network);
        } else {
            self.turns.push_back(network);
        }
        Some(item)
    }

    fn add(&mut self, network: &ClientNetwork, item: T) {
        if let Some(line) = self.lines.get_mut(network) {
            line.push_back(item);
        } else {
            self.lines.insert(network.clone(), VecDeque::from([item]));
            self.turns.push_back(network.clone());
        }
        self.len += 1;
    }

    fn longest_line(&mut self) -> Option<&mut VecDeque<T>> {
        self.lines.values_mut().max_by_key(|line| line.len())
    }
}

impl<T> fmt::Debug for FairQueue<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut queue = f.debug_struct("FairQueue");
        queue.field("len", &self.len).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::{FairQueue, Push};
    use crate::client_network::ClientNetwork;

    /// A queue of texts such as `a1`, whose first letter is the network.
    fn queue(capacity: usize, items: &[&'static str]) -> FairQueue<&'static str> {
        let mut queue = FairQueue::new(capacity);
        for item in items {
            assert_eq!(push(&mut queue, item), Push::Added);
        }
        queue
    }

    fn push(queue: &mut FairQueue<&'static str>, item: &'static str) -> Push<&'static str> {
        queue.push(&ClientNetwork::from(&item[..1]), item)
    }

    fn drain(mut queue: FairQueue<&'static str>) -> Vec<&'static str> {
        let items: Vec<_> = std::iter::from_fn(|| queue.pop()).collect();
        assert!(queue.lines.is_empty() && queue.turns.is_empty() && queue.len == 0);
        items
    }

    #[test]
    fn networks_take_turns() {
        let queue = queue(10, &["a1", "a2", "a3", "b1", "c1", "b2"]);
        assert_eq!(drain(queue), ["a1", "b1", "c1", "a2", "b2", "a3"]);
    }

    #[test]
    fn one_network_may_use_every_place_that_nobody_else_needs() {
        let mut queue = queue(3, &["a1", "a2", "a3"]);
        assert_eq!(push(&mut queue, "a4"), Push::ShareUsed("a4"));
        assert_eq!(drain(queue), ["a1", "a2", "a3"]);
    }

    #[test]
    fn a_full_queue_makes_room_for_a_network_with_a_shorter_line() {
        let mut queue = queue(4, &["a1", "a2", "a3", "a4"]);
        assert_eq!(push(&mut queue, "b1"), Push::Displaced("a4"));
        assert_eq!(push(&mut queue, "b2"), Push::Displaced("a3"));
        // Both networks have their share now.
        assert_eq!(push(&mut queue, "b3"), Push::ShareUsed("b3"));
        assert_eq!(push(&mut queue, "a5"), Push::ShareUsed("a5"));
        assert_eq!(drain(queue), ["a1", "b1", "a2", "b2"]);
    }

    #[test]
    fn a_network_keeps_its_only_place() {
        let mut queue = queue(2, &["a1", "b1"]);
        assert_eq!(push(&mut queue, "c1"), Push::Full("c1"));
        assert_eq!(push(&mut queue, "a2"), Push::ShareUsed("a2"));
        assert_eq!(drain(queue), ["a1", "b1"]);
    }

    #[test]
    fn a_network_that_was_served_queues_up_behind_the_others() {
        let mut queue = queue(5, &["a1", "b1", "b2"]);
        assert_eq!(queue.pop(), Some("a1"));
        assert_eq!(push(&mut queue, "a2"), Push::Added);
        assert_eq!(drain(queue), ["b1", "a2", "b2"]);
    }
}
