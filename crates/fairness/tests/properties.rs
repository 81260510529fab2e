//! What holds whatever owners do.

use std::collections::{BTreeMap, VecDeque};
use std::pin::Pin;
use std::sync::Arc;

use fairness::{Each, FairQueue, Refused, Remainder, Share, Shares};
use futures_util::FutureExt;
use proptest::collection::vec;
use proptest::prelude::*;

const OWNERS: u8 = 4;
const CAPACITY: u64 = 40;

proptest! {
    #[test]
    fn an_owner_that_holds_nothing_gets_what_is_free(
        demands in vec((0..OWNERS, 1..20_u64, any::<prop::sample::Index>(), any::<bool>()), 0..100),
    ) {
        let shares = Shares::new(Remainder(CAPACITY));
        let mut held: Vec<(u8, u64, Share<u8>)> = Vec::new();
        for (owner, units, index, ends) in demands {
            if ends && !held.is_empty() {
                held.remove(index.index(held.len()));
            } else if let Ok(share) = shares.try_acquire(owner, units) {
                held.push((owner, units, share));
            }
            let total = held.iter().map(|(_, units, _)| units).sum();
            prop_assert_eq!(shares.total(), total);
            prop_assert!(total <= CAPACITY);
            let newcomer = shares.try_acquire(OWNERS, CAPACITY - total);
            prop_assert!(newcomer.is_ok());
        }
        drop(held);
        prop_assert_eq!(shares.total(), 0);
    }

    #[test]
    fn no_owner_with_more_than_one_unit_holds_more_than_a_third_of_what_was_free_last(
        owners in vec(0..OWNERS, 0..100),
    ) {
        let shares = Shares::new(Remainder(CAPACITY));
        let mut held: BTreeMap<u8, Vec<Share<u8>>> = BTreeMap::new();
        for owner in owners {
            let own = held.entry(owner).or_default();
            if let Ok(share) = shares.try_acquire(owner, 1) {
                own.push(share);
                let free = CAPACITY - shares.total();
                prop_assert!(own.len() == 1 || own.len() as u64 * 3 <= free);
            }
        }
    }

    #[test]
    fn a_queue_is_full_before_it_refuses_and_refuses_nobody_with_fewer_items_than_others(
        steps in vec((0..OWNERS, 0..4_u8), 0..200),
    ) {
        let (capacity, mut items) = (8, BTreeMap::<u8, VecDeque<u64>>::new());
        let mut queue = FairQueue::new(capacity);
        for (owner, step) in steps {
            let longest = items.values().map(VecDeque::len).max().unwrap_or_default();
            let own = items.entry(owner).or_default();
            match step {
                0 => drop(own.pop_front().map(|number| queue.remove(&owner, number))),
                1 => if let Some(popped) = queue.pop() {
                    // The oldest one of its owner.
                    let first = items.get_mut(&popped).and_then(VecDeque::pop_front);
                    prop_assert!(first.is_some());
                } else {
                    prop_assert_eq!(queue.total(), 0);
                },
                _ => match queue.push(&owner, owner) {
                    Ok((number, displaced)) => {
                        own.push_back(number);
                        let own = own.len();
                        if let Some(line) = displaced.and_then(|other| items.get_mut(&other)) {
                            line.pop_back();
                            prop_assert!(line.len() >= own);
                        }
                    }
                    Err(refused) => {
                        prop_assert_eq!(queue.total(), capacity);
                        prop_assert!(own.len() + 1 >= longest);
                        prop_assert_eq!(refused == Refused::Full, own.is_empty());
                    }
                },
            }
            let len = items.values().map(VecDeque::len).sum::<usize>();
            prop_assert_eq!(queue.total(), len);
            prop_assert!(len <= capacity);
        }
    }

    #[test]
    fn an_owner_that_waits_is_served_after_one_item_of_each_other_owner(
        owners in vec(0..OWNERS, 1..100),
    ) {
        let mut queue = FairQueue::new(owners.len());
        for owner in &owners {
            queue.push(owner, *owner).unwrap();
        }
        let served: Vec<_> = std::iter::from_fn(|| queue.pop()).collect();
        prop_assert_eq!(served.len(), owners.len());
        for owner in 0..OWNERS {
            let turns = served.iter().enumerate().filter(|(_, served)| **served == owner);
            let turns: Vec<_> = turns.map(|(turn, _)| turn).collect();
            prop_assert!(turns.first().is_none_or(|first| *first < OWNERS.into()));
            prop_assert!(turns.windows(2).all(|pair| pair[1] - pair[0] <= OWNERS.into()));
        }
    }

    #[test]
    fn demands_wait_only_while_their_owner_has_its_share_and_in_order_whoever_gives_up(
        steps in vec((0..OWNERS, 0..3_u8, any::<prop::sample::Index>()), 0..100),
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build();
        runtime.unwrap().block_on(async { Waiting::new().run(steps) })?;
    }
}

type Acquiring = Pin<Box<dyn Future<Output = Result<Share<u8, Each>, Refused>>>>;

/// Owners of which each holds at most this many units; more demands wait.
const SHARE: usize = 2;

struct Waiting {
    shares: Arc<Shares<u8, Each>>,
    held: BTreeMap<u8, Vec<Share<u8, Each>>>,
    waiting: BTreeMap<u8, VecDeque<Acquiring>>,
}

impl Waiting {
    fn new() -> Self {
        Self {
            shares: Shares::with_waiting(Each(SHARE as u64), 1_000),
            held: BTreeMap::new(),
            waiting: BTreeMap::new(),
        }
    }

    fn run(mut self, steps: Vec<(u8, u8, prop::sample::Index)>) -> Result<(), TestCaseError> {
        for (owner, step, index) in steps {
            let held = self.held.entry(owner).or_default();
            let waiting = self.waiting.entry(owner).or_default();
            match step {
                0 if !held.is_empty() => drop(held.remove(index.index(held.len()))),
                1 if !waiting.is_empty() => drop(waiting.remove(index.index(waiting.len()))),
                _ => {
                    let shares = Arc::clone(&self.shares);
                    waiting.push_back(Box::pin(async move { shares.acquire(owner, 1).await }));
                }
            }
            self.poll(owner)?;
        }
        self.waiting.clear();
        self.held.clear();
        prop_assert_eq!(self.shares.total(), 0);
        Ok(())
    }

    /// Polls all demands of an owner.
    fn poll(&mut self, owner: u8) -> Result<(), TestCaseError> {
        let (held, waiting) = (
            self.held.entry(owner).or_default(),
            self.waiting.entry(owner).or_default(),
        );
        let demands = held.len() + waiting.len();
        for _ in 0..waiting.len() {
            let Some(first) = waiting.front_mut().and_then(FutureExt::now_or_never) else {
                break;
            };
            held.push(first.map_err(|error| TestCaseError::fail(error.to_string()))?);
            waiting.pop_front();
        }
        let overtaking = waiting
            .iter_mut()
            .skip(1)
            .any(|later| later.now_or_never().is_some());
        prop_assert!(!overtaking);
        prop_assert_eq!(held.len(), demands.min(SHARE));
        Ok(())
    }
}
