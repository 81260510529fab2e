use std::collections::HashMap;
use std::sync::{PoisonError, RwLock};

use serde::{Deserialize, Serialize};
use values::UserId;

/// What the user service answers at `GET /internal/revocations?cursor=…`.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct RevocationFeed {
    /// What to ask with next time.
    pub cursor: i64,
    /// Users whose epoch was raised since the cursor that was asked with, and their epoch now. Some
    /// may come twice; none is ever left out.
    pub epochs: Vec<(UserId, i64)>,
}

/// The raised epochs of users, as far as tokens of theirs may still be alive.
#[derive(Debug, Default)]
pub struct RevokedEpochs {
    epochs: RwLock<HashMap<UserId, i64>>,
}

impl RevokedEpochs {
    /// Whether a token of this user and epoch still counts.
    #[must_use]
    pub fn allows(&self, user: UserId, epoch: i64) -> bool {
        let epochs = self.epochs.read().unwrap_or_else(PoisonError::into_inner);
        epochs.get(&user).is_none_or(|raised| epoch >= *raised)
    }

    /// Adds what became known; an epoch never falls.
    pub fn raise(&self, raised: impl IntoIterator<Item = (UserId, i64)>) {
        let mut epochs = self.epochs.write().unwrap_or_else(PoisonError::into_inner);
        for (user, epoch) in raised {
            let known = epochs.entry(user).or_insert(epoch);
            *known = (*known).max(epoch);
        }
    }

    /// Replaces everything by a complete reading, which leaves out what no living token can meet.
    pub fn replace(&self, complete: impl IntoIterator<Item = (UserId, i64)>) {
        let mut epochs = self.epochs.write().unwrap_or_else(PoisonError::into_inner);
        *epochs = complete.into_iter().collect();
    }
}
