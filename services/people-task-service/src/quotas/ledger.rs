use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use database::{Connection, Database, Error};
use parking_lot::Mutex;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;
use values::{Names as _, UserId};

use super::error::{QuotaError, Whose};
use super::limits::{Amounts, Limits, Usage};
use super::store;

/// What a user has is remembered for this long after the user last added something.
const REMEMBERED: Duration = Duration::from_hours(1);
/// How often bytes are written and stocks are counted.
const INTERVAL: Duration = Duration::from_secs(3);
/// Counting takes at most this part of the time.
const PART: u32 = 5;
/// What all have is counted this often although no one adds anything.
const IDLE_INTERVAL: Duration = Duration::from_mins(1);
/// How many users are counted in a row.
const USERS: usize = 200;

/// What users have and add, as this process knows it.
pub(crate) struct Quotas {
    of_user: Limits,
    of_all: Limits,
    exempt: Vec<UserId>,
    ledger: Mutex<Ledger>,
}

#[derive(Debug, Default)]
struct Ledger {
    users: HashMap<UserId, Usage>,
    all: Usage,
}

impl Quotas {
    /// Limits of each user and of all together, and users to whom none applies.
    pub(crate) fn new(of_user: Limits, of_all: Limits, exempt: Vec<UserId>) -> Self {
        Self {
            of_user,
            of_all,
            exempt,
            ledger: Mutex::default(),
        }
    }

    /// Lets a user add something.
    pub(crate) fn take(&self, user: UserId, demand: Amounts) -> Result<(), QuotaError> {
        let now = Instant::now();
        self.with(|ledger| {
            let usage = ledger.users.entry(user).or_default();
            if !self.exempt.contains(&user) {
                let own = usage.check(&self.of_user, demand, now);
                own.map_err(|refusal| QuotaError::new(refusal, Whose::User))?;
                let all = ledger.all.check(&self.of_all, demand, now);
                all.map_err(|refusal| QuotaError::new(refusal, Whose::All))?;
            }
            usage.add(demand);
            ledger.all.add(demand);
            Ok(())
        })
    }

    /// More bytes are stored for a user, which were not known before.
    pub(crate) fn keep(&self, user: UserId, bytes: u64) {
        let bytes = i64::try_from(bytes).unwrap_or_default();
        self.with(|ledger| ledger.users.entry(user).or_default().unwritten_bytes += bytes);
    }

    /// A user's texts have become shorter, or what was taken was not added.
    pub(crate) fn give_back(&self, user: UserId, amounts: Amounts) {
        self.with(|ledger| {
            ledger.users.entry(user).or_default().remove(amounts);
            ledger.all.remove(amounts);
        });
    }

    fn with<T>(&self, change: impl FnOnce(&mut Ledger) -> T) -> T {
        change(&mut self.ledger.lock())
    }

    async fn write_bytes(&self, database: &Database) -> Result<(), Error> {
        let added = self.with(|ledger| {
            let users = ledger.users.iter_mut();
            let changed = users.filter(|(_, usage)| usage.unwritten_bytes != 0);
            let taken =
                changed.map(|(user, usage)| (*user, std::mem::take(&mut usage.unwritten_bytes)));
            taken.collect::<Vec<_>>()
        });
        if added.is_empty() {
            return Ok(());
        }
        let written = added.clone();
        let write = move |connection: &mut Connection| store::add_bytes(connection, &written);
        let result = database.run(write).await;
        if result.is_err() {
            self.with(|ledger| {
                for (user, bytes) in added {
                    ledger.users.entry(user).or_default().unwritten_bytes += bytes;
                }
            });
        }
        result
    }

    /// Counts what those users have who asked for something since they were last counted, and what all have. One whose count
    /// fails keeps no other waiting, unless no count would succeed.
    async fn count(&self, database: &Database) -> Result<(), Error> {
        let limits = self.of_user.stock;
        for user in self.users_to_count() {
            let count = move |connection: &mut Connection| store::count(connection, user, limits);
            let counted = self.count_one(
                database,
                |ledger| ledger.users.entry(user).or_default(),
                count,
            );
            if let Err(error) = counted.await {
                if error.is_outage() {
                    return Err(error);
                }
                error.warn("what a user has could not be counted; it is counted later");
            }
        }
        record_used(self.of_user.stock, self.most_of_a_user(), Whose::User);
        if !self.with(|ledger| ledger.all.is_uncounted(Instant::now(), IDLE_INTERVAL)) {
            return Ok(());
        }
        let limits = self.of_all.stock;
        let count = move |connection: &mut Connection| store::count_all(connection, limits);
        let counted = self
            .count_one(database, |ledger| &mut ledger.all, count)
            .await?;
        record_used(limits, counted, Whose::All);
        Ok(())
    }

    /// The most of each resource that any user has to whom the limits apply, of those who added something lately.
    fn most_of_a_user(&self) -> Amounts {
        self.with(|ledger| {
            let users = ledger.users.iter();
            let limited = users.filter(|(user, _)| !self.exempt.contains(user));
            let stocks = limited.map(|(_, usage)| usage.stock());
            stocks.fold(Amounts::default(), Amounts::max_of_each)
        })
    }

    /// Counts what a user has, or all together, and records it in their `usage`.
    async fn count_one(
        &self,
        database: &Database,
        usage: impl Fn(&mut Ledger) -> &mut Usage,
        count: impl FnOnce(&mut Connection) -> Result<Amounts, Error> + Send + 'static,
    ) -> Result<Amounts, Error> {
        self.with(|ledger| usage(ledger).begin_count());
        let began = Instant::now();
        let counted = database.run(count).await;
        let amounts = counted.as_ref().ok().copied();
        self.with(|ledger| usage(ledger).end_count(amounts, began, Instant::now()));
        counted
    }

    /// The users who asked for something since they were last counted, the longest uncounted first.
    fn users_to_count(&self) -> Vec<UserId> {
        let now = Instant::now();
        self.with(|ledger| {
            ledger.forget(now);
            let mut waiting: Vec<_> = ledger
                .users
                .iter()
                .filter(|(_, usage)| usage.awaits_count(now))
                .map(|(user, usage)| (usage.last_counted, *user))
                .collect();
            waiting.sort_unstable_by_key(|(counted, _)| *counted);
            let users = waiting.into_iter().map(|(_, user)| user);
            users.take(USERS).collect()
        })
    }
}

impl Ledger {
    fn forget(&mut self, now: Instant) {
        self.users.retain(|_, usage| {
            let asked = usage.last_asked.is_some_and(|at| now - at < REMEMBERED);
            asked || usage.unwritten_bytes != 0
        });
    }
}

fn record_used(limits: Amounts, used: Amounts, of: Whose) {
    let of = of.name();
    for (resource, ratio) in limits.used_ratios(used) {
        metrics::gauge!("quota_used_ratio", "resource" => resource, "of" => of).set(ratio);
    }
}

/// Writes the bytes that users added, and counts what they have, until it is cancelled. It counts by the connections of
/// lists, which read indexes alone and leave the others free.
pub(crate) async fn watch(
    quotas: Arc<Quotas>,
    database: Database,
    lists: Database,
    shutdown: CancellationToken,
) {
    let mut next_count = Instant::now();
    loop {
        if let Err(error) = quotas.write_bytes(&database).await {
            error.warn("the bytes that users added could not be written; they are written later");
        }
        if shutdown.is_cancelled() {
            return;
        }
        let started = Instant::now();
        if next_count <= started {
            let counted = quotas.count(&lists);
            if let Some(Err(error)) = shutdown.run_until_cancelled(counted).await {
                error.warn("what users have could not be counted; it is counted later");
            }
            next_count = Instant::now() + started.elapsed() * PART;
        }
        shutdown.run_until_cancelled(sleep(INTERVAL)).await;
    }
}

#[cfg(test)]
mod tests {
    use values::UserId;

    use super::{Amounts, Limits, Quotas};

    #[test]
    fn of_all_users_the_one_who_has_most_and_is_not_exempt_is_measured() {
        let bytes = |bytes| Amounts {
            bytes,
            ..Amounts::default()
        };
        let of_user = Limits {
            stock: bytes(1_000),
            ..Limits::default()
        };
        let [exempt, first, second, third] = [(); 4].map(|()| UserId::generate());
        let quotas = Quotas::new(of_user, Limits::default(), vec![exempt]);
        assert_eq!(quotas.most_of_a_user(), Amounts::default());
        for (user, amount) in [(exempt, 5_000), (first, 100), (second, 850), (third, 200)] {
            quotas.take(user, bytes(amount)).unwrap();
        }
        let ratios = of_user.stock.used_ratios(quotas.most_of_a_user());
        assert_eq!(ratios.collect::<Vec<_>>(), [("bytes", 0.85)]);
    }
}
