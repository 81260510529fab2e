use std::time::{Duration, Instant};

use values::Names as _;

/// Counting what one user has, or all together, takes at most this part of the time: a million pending tasks with their
/// webhooks take seconds.
const PART: u32 = 50;

values::names! {
    /// Something of which users may have and add a limited amount, with the name in problems and metrics.
    pub(crate) enum Resource {
        /// Pending tasks, or tasks that are created.
        Tasks = "tasks",
        Webhooks = "webhooks",
        Bytes = "bytes",
        Mails = "mails",
    }
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Amounts {
    pub(crate) tasks: u64,
    pub(crate) webhooks: u64,
    /// Of titles, descriptions, metadata, options of webhooks, and answers that are kept.
    pub(crate) bytes: u64,
    pub(crate) mails: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Excess {
    pub(crate) resource: Resource,
    pub(crate) limit: u64,
    pub(crate) used: u64,
}

impl Amounts {
    fn each(self) -> [(Resource, u64); 4] {
        [
            (Resource::Tasks, self.tasks),
            (Resource::Webhooks, self.webhooks),
            (Resource::Bytes, self.bytes),
            (Resource::Mails, self.mails),
        ]
    }

    fn zip(self, other: Self, combine: impl Fn(u64, u64) -> u64) -> Self {
        Self {
            tasks: combine(self.tasks, other.tasks),
            webhooks: combine(self.webhooks, other.webhooks),
            bytes: combine(self.bytes, other.bytes),
            mails: combine(self.mails, other.mails),
        }
    }

    pub(super) fn plus(self, other: Self) -> Self {
        self.zip(other, u64::saturating_add)
    }

    pub(super) fn minus(self, other: Self) -> Self {
        self.zip(other, u64::saturating_sub)
    }

    pub(super) fn max_of_each(self, other: Self) -> Self {
        self.zip(other, u64::max)
    }

    /// The first resource of which `demand` would exceed these limits, if `used` is used. A limit of 0 is none.
    fn exceeded_by(self, used: Self, demand: Self) -> Option<Excess> {
        let used_and_demanded = used.each().into_iter().zip(demand.each());
        let mut all = self.each().into_iter().zip(used_and_demanded);
        all.find_map(|((resource, limit), ((_, used), (_, demand)))| {
            let is_exceeded = limit > 0 && demand > 0 && used.saturating_add(demand) > limit;
            is_exceeded.then_some(Excess {
                resource,
                limit,
                used,
            })
        })
    }

    /// How much of these limits is used, of each resource that is limited.
    pub(super) fn used_ratios(self, used: Self) -> impl Iterator<Item = (&'static str, f64)> {
        let limits = self.each().into_iter().zip(used.each());
        let limited = limits.filter(|((_, limit), _)| *limit > 0);
        #[expect(clippy::cast_precision_loss, reason = "a ratio is not exact")]
        limited.map(|((resource, limit), (_, used))| (resource.name(), used as f64 / limit as f64))
    }
}

#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Limits {
    pub(crate) stock: Amounts,
    pub(crate) per_minute: Amounts,
    pub(crate) per_hour: Amounts,
}

#[derive(Debug, Clone, Copy, Default)]
struct Window<const MINUTES: u64> {
    began: Option<Instant>,
    added: Amounts,
}

impl<const MINUTES: u64> Window<MINUTES> {
    /// What would be exceeded, and when the next window begins.
    fn check(&mut self, limits: Amounts, demand: Amounts, now: Instant) -> Result<(), Refusal> {
        let length = Duration::from_mins(MINUTES);
        let began = self.began.filter(|began| now - *began < length);
        // What users without limits added before the first window counts for none.
        if began.is_none() {
            (self.began, self.added) = (Some(now), Amounts::default());
        }
        let left = length - (now - began.unwrap_or(now));
        let excess = limits.exceeded_by(self.added, demand);
        excess.map_or(Ok(()), |excess| Err(Refusal::Rate(excess.resource, left)))
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Refusal {
    Stock(Excess),
    /// It may add more of the resource after this time.
    Rate(Resource, Duration),
}

/// What a user, or all together, have and have added lately.
#[derive(Debug, Default)]
pub(super) struct Usage {
    minute: Window<1>,
    hour: Window<60>,
    counted: Amounts,
    /// What was added since the last count began.
    added: Amounts,
    /// What had been added when the count began that is under way.
    added_before: Amounts,
    pub(super) last_asked: Option<Instant>,
    pub(super) last_counted: Option<Instant>,
    next_count: Option<Instant>,
    /// By how much its bytes changed since they were last written to its row.
    pub(super) unwritten_bytes: i64,
}

impl Usage {
    /// What it has, as far as is known.
    pub(super) fn stock(&self) -> Amounts {
        self.counted.plus(self.added)
    }

    pub(super) fn check(
        &mut self,
        limits: &Limits,
        demand: Amounts,
        now: Instant,
    ) -> Result<(), Refusal> {
        self.last_asked = Some(now);
        self.minute.check(limits.per_minute, demand, now)?;
        self.hour.check(limits.per_hour, demand, now)?;
        let excess = limits.stock.exceeded_by(self.stock(), demand);
        excess.map_or(Ok(()), |excess| Err(Refusal::Stock(excess)))
    }

    pub(super) fn add(&mut self, demand: Amounts) {
        self.minute.added = self.minute.added.plus(demand);
        self.hour.added = self.hour.added.plus(demand);
        self.added = self.added.plus(demand);
        self.unwritten_bytes += i64::try_from(demand.bytes).unwrap_or_default();
    }

    /// What was added has gone again, or was not added after all.
    pub(super) fn remove(&mut self, amounts: Amounts) {
        self.minute.added = self.minute.added.minus(amounts);
        self.hour.added = self.hour.added.minus(amounts);
        self.added = self.added.minus(amounts);
        self.unwritten_bytes -= i64::try_from(amounts.bytes).unwrap_or_default();
    }

    /// Whether something was asked for since the last count, and it may be counted again.
    pub(super) fn awaits_count(&self, now: Instant) -> bool {
        self.last_asked > self.last_counted && self.may_be_counted(now)
    }

    /// The same, or the last count is older than the interval.
    pub(super) fn is_uncounted(&self, now: Instant, interval: Duration) -> bool {
        let is_old = self.last_counted.is_none_or(|at| now - at >= interval);
        self.awaits_count(now) || (is_old && self.may_be_counted(now))
    }

    fn may_be_counted(&self, now: Instant) -> bool {
        self.next_count.is_none_or(|at| at <= now)
    }

    pub(super) fn begin_count(&mut self) {
        self.added_before = self.added;
    }

    /// What was counted includes what had been added when the count began; `None` if it failed. What was added before is
    /// forgotten then, too: some of it has gone again, and without a count it would add up until all is refused. The rates
    /// still hold, and the next count sees all.
    pub(super) fn end_count(&mut self, counted: Option<Amounts>, began: Instant, now: Instant) {
        self.next_count = Some(now + (now - began) * PART);
        self.added = self.added.minus(self.added_before);
        let Some(counted) = counted else { return };
        self.counted = counted;
        self.last_counted = Some(now);
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use super::{Amounts, Excess, Limits, Refusal, Resource, Usage};

    fn tasks(tasks: u64) -> Amounts {
        Amounts {
            tasks,
            ..Amounts::default()
        }
    }

    #[test]
    fn a_stock_is_what_was_counted_and_what_was_added_since() {
        let now = Instant::now();
        let limits = Limits {
            stock: tasks(10),
            ..Limits::default()
        };
        let mut usage = Usage::default();
        usage.add(tasks(6));
        usage.begin_count();
        usage.add(tasks(2));
        usage.end_count(Some(tasks(7)), now, now);
        assert_eq!(usage.stock(), tasks(9));
        assert_eq!(usage.check(&limits, tasks(1), now), Ok(()));
        let excess = Excess {
            resource: Resource::Tasks,
            limit: 10,
            used: 9,
        };
        let refused = usage.check(&limits, tasks(2), now);
        assert_eq!(refused, Err(Refusal::Stock(excess)));
        // Nothing else is refused, even if there is more than the limit by now.
        usage.add(tasks(2));
        let webhooks = Amounts {
            webhooks: 5,
            ..Amounts::default()
        };
        assert_eq!(usage.check(&limits, webhooks, now), Ok(()));
    }

    #[test]
    fn what_took_long_to_count_is_counted_seldom_also_after_a_failure() {
        let began = Instant::now();
        let ended = began + Duration::from_secs(6);
        for counted in [Some(tasks(7)), None] {
            let mut usage = Usage::default();
            let ask = usage.check(&Limits::default(), tasks(1), began);
            assert_eq!(ask, Ok(()));
            assert!(usage.awaits_count(began));
            usage.end_count(counted, began, ended);
            let later = ended + Duration::from_secs(299);
            let ask = usage.check(&Limits::default(), tasks(1), later);
            assert_eq!(ask, Ok(()));
            assert!(!usage.awaits_count(later));
            assert!(!usage.is_uncounted(later, Duration::ZERO));
            assert!(usage.awaits_count(later + Duration::from_secs(1)));
        }
    }

    #[test]
    fn what_was_added_before_counts_that_fail_does_not_add_up() {
        let now = Instant::now();
        let mut usage = Usage::default();
        usage.add(tasks(6));
        usage.begin_count();
        usage.end_count(Some(tasks(5)), now, now);
        for _ in 0..3 {
            usage.add(tasks(3));
            usage.begin_count();
            usage.add(tasks(1));
            usage.end_count(None, now, now);
            assert_eq!(usage.stock(), tasks(6));
            usage.remove(tasks(1));
        }
    }

    #[test]
    fn a_rate_is_of_each_minute_or_hour() {
        let now = Instant::now();
        let mails = |mails| Amounts {
            mails,
            ..Amounts::default()
        };
        let limits = Limits {
            per_minute: tasks(2),
            per_hour: mails(1),
            ..Limits::default()
        };
        let mut usage = Usage::default();
        assert_eq!(usage.check(&limits, tasks(2), now), Ok(()));
        usage.add(tasks(2).plus(mails(1)));
        let later = now + Duration::from_secs(20);
        let wait = Duration::from_secs(40);
        let refused = usage.check(&limits, tasks(1), later);
        assert_eq!(refused, Err(Refusal::Rate(Resource::Tasks, wait)));
        let next = now + Duration::from_mins(1);
        assert_eq!(usage.check(&limits, tasks(1), next), Ok(()));
        let wait = Duration::from_mins(59);
        let refused = usage.check(&limits, mails(1), next);
        assert_eq!(refused, Err(Refusal::Rate(Resource::Mails, wait)));
    }
}
