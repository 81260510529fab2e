use std::collections::HashMap;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use values::UserId;

use super::amounts::{Amounts, Limits, Usage};
use super::error::{QuotaError, Whose};

/// What a user has is remembered for this long after the user last added something.
const REMEMBERED: Duration = Duration::from_hours(1);

/// What users have and add, as this process knows it.
#[derive(Debug)]
pub(crate) struct Quotas {
    pub(super) of_user: Limits,
    pub(super) of_all: Limits,
    exempt: Vec<UserId>,
    ledger: Mutex<Ledger>,
}

#[derive(Debug, Default)]
pub(super) struct Ledger {
    pub(super) users: HashMap<UserId, Usage>,
    pub(super) all: Usage,
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
    ///
    /// # Errors
    /// The user, or all together, would have or add too much.
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

    /// A user's texts have become shorter.
    pub(crate) fn give_back(&self, user: UserId, bytes: u64) {
        let bytes = i64::try_from(bytes).unwrap_or_default();
        self.with(|ledger| ledger.users.entry(user).or_default().unwritten_bytes -= bytes);
    }

    pub(super) fn with<T>(&self, change: impl FnOnce(&mut Ledger) -> T) -> T {
        change(&mut self.ledger.lock())
    }
}

impl Ledger {
    /// Forgets users who have added nothing for long.
    pub(super) fn forget(&mut self, now: Instant) {
        self.users.retain(|_, usage| {
            let asked = usage.last_asked.is_some_and(|at| now - at < REMEMBERED);
            asked || usage.unwritten_bytes != 0
        });
    }
}
