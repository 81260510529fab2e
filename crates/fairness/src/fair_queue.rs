use std::collections::{BTreeMap, HashMap};

use crate::{Owner, Refused};

/// A bounded queue that gives each owner the same share of places and turns.
///
/// Owners take turns, so an item waits for at most one item of each other owner before the next one of its own owner is
/// served. An owner may fill the whole queue while no other one needs it. Once the queue is full, an owner with fewer
/// items takes a place from the one with the most.
pub struct FairQueue<O, T> {
    capacity: usize,
    total: usize,
    next_number: u64,
    lines: HashMap<O, Line<T>>,
    /// The owners that have a line, in the order of their turns.
    turns: BTreeMap<u64, O>,
}

struct Line<T> {
    turn: u64,
    /// By their numbers, so the oldest one is the first.
    items: BTreeMap<u64, T>,
}

impl<O: Owner, T> FairQueue<O, T> {
    /// A queue with this many places.
    pub fn new(capacity: usize) -> Self {
        Self {
            capacity,
            total: 0,
            next_number: 0,
            lines: HashMap::new(),
            turns: BTreeMap::new(),
        }
    }

    /// The number of items.
    pub fn total(&self) -> usize {
        self.total
    }

    /// The number of an owner's items.
    pub fn total_of(&self, owner: &O) -> usize {
        self.lines.get(owner).map_or(0, |line| line.items.len())
    }

    /// The items of all owners.
    pub fn items(&self) -> impl Iterator<Item = &T> {
        self.lines.values().flat_map(|line| line.items.values())
    }

    /// Adds an item. Returns its number, by which it can be removed, and the item whose place it took, if the queue was
    /// full: the newest one of the owner with the most.
    ///
    /// # Errors
    /// The queue is full, and no owner has at least two items more than this one.
    pub fn push(&mut self, owner: &O, item: T) -> Result<(u64, Option<T>), Refused> {
        let mut displaced = None;
        if self.total < self.capacity {
            self.total += 1;
        } else {
            displaced = Some(self.displace_for(owner)?);
        }
        let number = self.take_number();
        let line = self.lines.entry(owner.clone()).or_insert_with(|| {
            self.turns.insert(number, owner.clone());
            Line {
                turn: number,
                items: BTreeMap::new(),
            }
        });
        line.items.insert(number, item);
        Ok((number, displaced))
    }

    /// The next item: the oldest one of the owner whose turn it is.
    pub fn pop(&mut self) -> Option<T> {
        let (_, owner) = self.turns.pop_first()?;
        let turn = self.take_number();
        let line = self.lines.get_mut(&owner)?;
        let (_, item) = line.items.pop_first()?;
        self.total -= 1;
        if line.items.is_empty() {
            self.lines.remove(&owner);
        } else {
            line.turn = turn;
            self.turns.insert(turn, owner);
        }
        Some(item)
    }

    /// Removes an item of an owner, if it is still in the queue.
    pub fn remove(&mut self, owner: &O, number: u64) -> Option<T> {
        let line = self.lines.get_mut(owner)?;
        let item = line.items.remove(&number)?;
        self.total -= 1;
        if line.items.is_empty() {
            self.turns.remove(&line.turn);
            self.lines.remove(owner);
        }
        Some(item)
    }

    fn displace_for(&mut self, owner: &O) -> Result<T, Refused> {
        let own = self.total_of(owner);
        let longest = self.lines.values_mut().max_by_key(|line| line.items.len());
        // Afterwards, the displaced owner must not have fewer items than this one.
        let displaced = longest
            .filter(|line| line.items.len() > own + 1)
            .and_then(|line| line.items.pop_last());
        match displaced {
            Some((_, item)) => Ok(item),
            None if own > 0 => Err(Refused::ShareUsed),
            None => Err(Refused::Full),
        }
    }

    fn take_number(&mut self) -> u64 {
        self.next_number += 1;
        self.next_number
    }
}

#[cfg(test)]
mod tests {
    use super::FairQueue;
    use crate::Refused;

    /// A queue of texts such as `a1`, whose first letter is the owner.
    type Queue = FairQueue<&'static str, &'static str>;

    fn queue(capacity: usize, items: &[&'static str]) -> Queue {
        let mut queue = FairQueue::new(capacity);
        for item in items {
            assert_eq!(push(&mut queue, item), Ok(None));
        }
        queue
    }

    /// What the item displaced.
    fn push(queue: &mut Queue, item: &'static str) -> Result<Option<&'static str>, Refused> {
        queue
            .push(&&item[..1], item)
            .map(|(_, displaced)| displaced)
    }

    fn drain(mut queue: Queue) -> Vec<&'static str> {
        let items: Vec<_> = std::iter::from_fn(|| queue.pop()).collect();
        assert!(queue.lines.is_empty() && queue.turns.is_empty() && queue.total == 0);
        items
    }

    #[test]
    fn owners_take_turns() {
        let queue = queue(10, &["a1", "a2", "a3", "b1", "c1", "b2"]);
        assert_eq!(drain(queue), ["a1", "b1", "c1", "a2", "b2", "a3"]);
    }

    #[test]
    fn one_owner_may_use_every_place_that_nobody_else_needs() {
        let mut queue = queue(3, &["a1", "a2", "a3"]);
        assert_eq!(push(&mut queue, "a4"), Err(Refused::ShareUsed));
        assert_eq!(drain(queue), ["a1", "a2", "a3"]);
    }

    #[test]
    fn a_full_queue_makes_room_for_an_owner_with_fewer_items() {
        let mut queue = queue(4, &["a1", "a2", "a3", "a4"]);
        assert_eq!(push(&mut queue, "b1"), Ok(Some("a4")));
        assert_eq!(push(&mut queue, "b2"), Ok(Some("a3")));
        // Both owners have their share now.
        assert_eq!(push(&mut queue, "b3"), Err(Refused::ShareUsed));
        assert_eq!(push(&mut queue, "a5"), Err(Refused::ShareUsed));
        assert_eq!(drain(queue), ["a1", "b1", "a2", "b2"]);
    }

    #[test]
    fn an_owner_keeps_its_only_place() {
        let mut queue = queue(2, &["a1", "b1"]);
        assert_eq!(push(&mut queue, "c1"), Err(Refused::Full));
        assert_eq!(push(&mut queue, "a2"), Err(Refused::ShareUsed));
        assert_eq!(drain(queue), ["a1", "b1"]);
    }

    #[test]
    fn an_owner_that_was_served_queues_up_behind_the_others() {
        let mut queue = queue(5, &["a1", "b1", "b2"]);
        assert_eq!(queue.pop(), Some("a1"));
        assert_eq!(push(&mut queue, "a2"), Ok(None));
        assert_eq!(drain(queue), ["b1", "a2", "b2"]);
    }

    #[test]
    fn a_removed_item_frees_its_place_and_an_owner_without_items_has_no_turn() {
        let mut queue = queue(2, &["a1"]);
        let (number, _) = queue.push(&"b", "b1").unwrap();
        assert_eq!(queue.remove(&"a", number), None);
        assert_eq!(queue.remove(&"b", number), Some("b1"));
        assert_eq!(queue.remove(&"b", number), None);
        assert_eq!((queue.total(), queue.turns.len()), (1, 1));
        assert_eq!(push(&mut queue, "c1"), Ok(None));
        assert_eq!(drain(queue), ["a1", "c1"]);
    }
}
