use std::collections::HashMap;
use std::sync::{PoisonError, RwLock};

use serde::{Deserialize, Serialize};
use values::UserId;

/// The user service's response to `GET /internal/revocations?cursor=…`.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct RevocationFeed {
    /// The cursor for the next request.
    pub cursor: i64,
    /// Users whose epoch was raised since the requested cursor, with their current epoch. A user may occur twice,
    /// but none is omitted.
    pub epochs: Vec<(UserId, i64)>,
}

/// The raised epochs of users who may still have unexpired tokens.
#[derive(Debug, Default)]
pub struct RevokedEpochs {
    epochs: RwLock<HashMap<UserId, i64>>,
}

impl RevokedEpochs {
    /// Whether a token of this user and epoch is not revoked.
    #[must_use]
    pub fn allows(&self, user: UserId, epoch: i64) -> bool {
        let epochs = self.epochs.read().unwrap_or_else(PoisonError::into_inner);
        epochs.get(&user).is_none_or(|raised| epoch >= *raised)
    }

    /// Adds raised epochs. An epoch never decreases.
    pub fn raise(&self, raised: impl IntoIterator<Item = (UserId, i64)>) {
        let mut epochs = self.epochs.write().unwrap_or_else(PoisonError::into_inner);
        for (user, epoch) in raised {
            let known = epochs.entry(user).or_insert(epoch);
            *known = (*known).max(epoch);
        }
    }

    /// Replaces all epochs by a complete list, which omits epochs that no unexpired token is below.
    pub fn replace(&self, complete: impl IntoIterator<Item = (UserId, i64)>) {
        let mut epochs = self.epochs.write().unwrap_or_else(PoisonError::into_inner);
        *epochs = complete.into_iter().collect();
    }
}
