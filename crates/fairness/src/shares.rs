use std::collections::HashMap;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio::time::timeout;

use crate::{Demand, Owner, Refused, Remainder, Rule};

/// How often the first one that waits asks again without a sign, because rules may depend on time and on other owners.
const RECHECK: Duration = Duration::from_secs(1);

/// Units of something, such as requests or bytes, that owners share by a [`Rule`].
#[derive(Debug)]
pub struct Shares<O: Owner, R = Remainder> {
    rule: R,
    max_waiting: u64,
    held: Mutex<Held<O>>,
    /// Units were given back. Wakes the first of the owners that wait and hold nothing: only units of others can meet their
    /// demands.
    freed: Notify,
}

#[derive(Debug)]
struct Held<O> {
    total: u64,
    /// Only owners that hold units or wait for some.
    owners: HashMap<O, Entry>,
}

#[derive(Debug, Default)]
struct Entry {
    units: u64,
    waiting: u64,
    line: Option<Arc<Line>>,
}

#[derive(Debug, Default)]
struct Line {
    /// Locked by the first of those that wait; the others wait for the lock, in the order of their arrival.
    first: tokio::sync::Mutex<()>,
    /// The owner holds fewer units than before.
    freed: Notify,
}

impl<O: Owner> Held<O> {
    fn add(&mut self, rule: &impl Rule<O>, owner: &O, units: u64) -> Result<(), Refused> {
        let own = self.owners.get(owner).map_or(0, |entry| entry.units);
        let demand = Demand {
            units,
            own,
            total: self.total,
        };
        rule.check(owner, demand)?;
        self.total = self.total.saturating_add(units);
        self.entry(owner).units = own.saturating_add(units);
        Ok(())
    }

    fn entry(&mut self, owner: &O) -> &mut Entry {
        self.owners.entry(owner.clone()).or_default()
    }

    /// Changes the entry of an owner, and forgets it if nothing is left.
    fn update(&mut self, owner: &O, change: impl FnOnce(&mut Entry)) {
        if let Some(entry) = self.owners.get_mut(owner) {
            change(entry);
            if entry.units == 0 && entry.waiting == 0 {
                self.owners.remove(owner);
            }
        }
    }
}

impl<O: Owner, R: Rule<O>> Shares<O, R> {
    /// Shares without waiting: who gets nothing at once is refused.
    pub fn new(rule: R) -> Arc<Self> {
        Self::with_waiting(rule, 0)
    }

    /// Shares for which at most `max_waiting` demands of each owner wait.
    pub fn with_waiting(rule: R, max_waiting: u64) -> Arc<Self> {
        Arc::new(Self {
            rule,
            max_waiting,
            held: Mutex::new(Held {
                total: 0,
                owners: HashMap::new(),
            }),
            freed: Notify::new(),
        })
    }

    /// The rule by which units are shared.
    pub fn rule(&self) -> &R {
        &self.rule
    }

    /// Takes units for an owner, until the share is dropped.
    ///
    /// # Errors
    /// The rule refuses them, or earlier demands of the owner wait.
    pub fn try_acquire(self: &Arc<Self>, owner: O, units: u64) -> Result<Share<O, R>, Refused> {
        let mut held = self.held.lock();
        let entry = held.owners.get(&owner);
        if entry.is_some_and(|entry| entry.waiting > 0) {
            return Err(Refused::ShareUsed);
        }
        held.add(&self.rule, &owner, units)?;
        drop(held);
        Ok(self.share(owner, units))
    }

    /// Waits until the rule allows these units, after earlier demands of the owner. Giving up is dropping the future.
    ///
    /// # Errors
    /// As many demands of the owner wait as may.
    pub async fn acquire(self: &Arc<Self>, owner: O, units: u64) -> Result<Share<O, R>, Refused> {
        if let Ok(share) = self.try_acquire(owner.clone(), units) {
            return Ok(share);
        }
        let line = self.wait(&owner)?;
        let _waiting = Waiting(self, &owner);
        let _first = line.first.lock().await;
        loop {
            {
                let mut freed = pin!(self.freed.notified());
                // Before the units are asked for, so that none are given back unnoticed.
                freed.as_mut().enable();
                let Err(holds) = self.take(&owner, units) else {
                    return Ok(self.share(owner.clone(), units));
                };
                if !holds {
                    let _ = timeout(RECHECK, freed).await;
                    continue;
                }
            }
            let _ = timeout(RECHECK, line.freed.notified()).await;
        }
    }

    /// Takes units, or says whether the owner holds some.
    fn take(&self, owner: &O, units: u64) -> Result<(), bool> {
        let mut held = self.held.lock();
        let taken = held.add(&self.rule, owner, units);
        taken.map_err(|_| held.owners.get(owner).is_some_and(|entry| entry.units > 0))
    }

    fn wait(&self, owner: &O) -> Result<Arc<Line>, Refused> {
        let mut held = self.held.lock();
        let waiting = held.owners.get(owner).map_or(0, |entry| entry.waiting);
        if waiting >= self.max_waiting {
            return Err(Refused::ShareUsed);
        }
        let entry = held.entry(owner);
        entry.waiting += 1;
        Ok(Arc::clone(entry.line.get_or_insert_default()))
    }

    fn share(self: &Arc<Self>, owner: O, units: u64) -> Share<O, R> {
        Share {
            shares: Arc::clone(self),
            owner,
            units,
        }
    }
}

impl<O: Owner, R> Shares<O, R> {
    /// How many units all owners hold together.
    pub fn total(&self) -> u64 {
        self.held.lock().total
    }

    fn remove(&self, owner: &O, units: u64) {
        let mut held = self.held.lock();
        held.total = held.total.saturating_sub(units);
        held.update(owner, |entry| {
            entry.units = entry.units.saturating_sub(units);
            if let Some(line) = &entry.line {
                line.freed.notify_one();
            }
        });
        self.freed.notify_one();
    }
}

/// Units that an owner holds. Dropping it gives them back.
#[derive(Debug)]
pub struct Share<O: Owner, R = Remainder> {
    shares: Arc<Shares<O, R>>,
    owner: O,
    units: u64,
}

impl<O: Owner, R: Rule<O>> Share<O, R> {
    /// Takes more units, until it holds at least this many.
    ///
    /// # Errors
    /// The rule refuses them. Those that it holds remain.
    pub fn grow_to(&mut self, units: u64) -> Result<(), Refused> {
        let more = units.saturating_sub(self.units);
        let shares = &self.shares;
        shares.held.lock().add(&shares.rule, &self.owner, more)?;
        self.units += more;
        Ok(())
    }

    /// Gives units back, until it holds at most this many.
    pub fn shrink_to(&mut self, units: u64) {
        let fewer = self.units.saturating_sub(units);
        self.shares.remove(&self.owner, fewer);
        self.units -= fewer;
    }
}

impl<O: Owner, R> Drop for Share<O, R> {
    fn drop(&mut self) {
        self.shares.remove(&self.owner, self.units);
    }
}

/// A demand that waits. Dropping it ends the waiting.
struct Waiting<'a, O: Owner, R>(&'a Shares<O, R>, &'a O);

impl<O: Owner, R> Drop for Waiting<'_, O, R> {
    fn drop(&mut self) {
        let Self(shares, owner) = self;
        shares.held.lock().update(owner, |entry| entry.waiting -= 1);
    }
}

#[cfg(test)]
mod tests {
    use std::pin::pin;
    use std::sync::Arc;

    use futures_util::future::{FutureExt as _, join_all};

    use super::{Share, Shares};
    use crate::{Each, Refused, Remainder};

    /// Takes single units until there are no more.
    fn take_all(shares: &Arc<Shares<u8>>, owner: u8) -> Vec<Share<u8>> {
        std::iter::from_fn(|| shares.try_acquire(owner, 1).ok()).collect()
    }

    #[test]
    fn busy_owners_always_leave_something_for_the_next_one() {
        let shares = Shares::new(Remainder(1024));
        let mut held = vec![take_all(&shares, 1)];
        assert_eq!(held[0].len(), 256);
        let refused = shares.try_acquire(1, 1).unwrap_err();
        assert_eq!(refused, Refused::ShareUsed);
        for hostile in 2..=10 {
            held.push(take_all(&shares, hostile));
        }
        let rest = take_all(&shares, 11).len();
        assert!(rest >= 14, "{rest}");
    }

    #[test]
    fn the_share_of_an_owner_shrinks_while_others_are_busy() {
        let shares = Shares::new(Remainder(32));
        let mut first = take_all(&shares, 1);
        let second = take_all(&shares, 2);
        assert_eq!((first.len(), second.len()), (8, 6));
        first.truncate(6);
        assert!(shares.try_acquire(1, 1).is_err());
        drop(second);
        assert!(shares.try_acquire(1, 1).is_ok());
    }

    #[test]
    fn the_last_unit_is_for_an_owner_that_holds_none() {
        let shares = Shares::new(Remainder(1));
        let only = shares.try_acquire(1, 1).unwrap();
        let refused = |owner| shares.try_acquire(owner, 1).unwrap_err();
        assert_eq!([refused(1), refused(2)], [Refused::Full; 2]);
        drop(only);
        assert!(shares.try_acquire(2, 1).is_ok());
    }

    #[test]
    fn a_share_grows_within_the_same_limits() {
        let shares = Shares::new(Remainder(100));
        let mut share = shares.try_acquire(1, 10).unwrap();
        assert_eq!(share.grow_to(25), Ok(()));
        assert_eq!(share.grow_to(30), Err(Refused::ShareUsed));
        let _other = shares.try_acquire(2, 70).unwrap();
        assert_eq!(share.grow_to(35), Err(Refused::Full));
        drop(share);
        assert!(shares.try_acquire(3, 30).is_ok());
    }

    #[test]
    fn what_exceeds_the_capacity_is_allowed_alone() {
        let shares = Shares::new(Remainder(100));
        let all = shares.try_acquire(1, 1_000).unwrap();
        assert!(shares.try_acquire(2, 1).is_err());
        drop(all);
        assert!(shares.try_acquire(2, 1).is_ok());
    }

    #[test]
    fn a_share_that_shrinks_gives_back_the_rest() {
        let shares = Shares::new(Each(10));
        let mut share = shares.try_acquire(1, 10).unwrap();
        share.shrink_to(4);
        assert_eq!(shares.total(), 4);
        assert!(shares.try_acquire(1, 6).is_ok());
        share.shrink_to(0);
        assert!(shares.held.lock().owners.is_empty());
    }

    #[tokio::test]
    async fn owners_without_units_are_forgotten() {
        let shares = Shares::with_waiting(Each(2), 1);
        let held: Vec<_> = (1..=3).map(|owner| shares.try_acquire(owner, 2)).collect();
        assert!(shares.acquire(1, 1).now_or_never().is_none());
        assert!(shares.acquire(4, 3).now_or_never().is_none());
        assert_eq!(shares.held.lock().owners.len(), 3);
        drop(held);
        assert!(shares.held.lock().owners.is_empty());
        assert_eq!(shares.total(), 0);
    }

    #[tokio::test]
    async fn a_demand_waits_until_there_are_enough_units() {
        let shares = Shares::with_waiting(Each(10), 1);
        let first = shares.try_acquire(1, 8).unwrap();
        assert!(shares.try_acquire(1, 3).is_err());
        assert!(shares.try_acquire(2, 10).is_ok());
        // join! polls the first future first, so it is already waiting when the share is dropped.
        let (second, ()) = tokio::join!(shares.acquire(1, 3), async { drop(first) });
        assert!(second.is_ok());
    }

    #[tokio::test]
    async fn demands_beyond_those_that_may_wait_are_refused_at_once() {
        let shares = Shares::with_waiting(Each(1), 64);
        let taken = shares.try_acquire(1, 1);
        let waiting = (0..64).map(|_| async { shares.acquire(1, 1).await.is_ok() });
        let (waited, refused) = tokio::join!(join_all(waiting), async {
            let refused = shares.acquire(1, 1).await.is_err();
            drop(taken);
            refused
        });
        assert!(refused);
        assert!(waited.into_iter().all(|acquired| acquired));
    }

    #[tokio::test]
    async fn what_an_owner_gives_back_wakes_the_first_one_that_holds_nothing() {
        let shares = Shares::with_waiting(Remainder(2), 1);
        let mut held: Vec<_> = (1..=2).map(|owner| shares.try_acquire(owner, 1)).collect();
        let [mut third, mut fourth, mut fifth] =
            [3, 4, 5].map(|owner| Box::pin(shares.acquire(owner, 1)));
        for demand in [&mut third, &mut fourth, &mut fifth] {
            assert!(demand.now_or_never().is_none());
        }
        drop(held.pop());
        assert!((&mut fourth).now_or_never().is_none());
        let share = third.now_or_never();
        assert!(share.is_some());
        drop(share);
        // A demand that gives up passes its turn on.
        drop(fourth);
        assert!(fifth.now_or_never().is_some());
    }

    #[tokio::test]
    async fn a_demand_does_not_overtake_an_earlier_one_of_its_owner() {
        let shares = Shares::with_waiting(Each(2), 2);
        let mut held = vec![shares.try_acquire(1, 1), shares.try_acquire(1, 1)];
        let mut large = pin!(shares.acquire(1, 2));
        let mut small = pin!(shares.acquire(1, 1));
        assert!(large.as_mut().now_or_never().is_none());
        assert!(small.as_mut().now_or_never().is_none());
        drop(held.pop());
        assert!(small.as_mut().now_or_never().is_none());
        assert!(shares.try_acquire(1, 1).is_err());
        drop(held);
        let large = large.now_or_never().unwrap();
        assert!(large.is_ok() && small.as_mut().now_or_never().is_none());
        drop(large);
        assert!(small.now_or_never().is_some());
    }
}
