use database::{BatchLimits, Database, Lookups};
use values::UserId;

use super::error::AccountError;
use super::store::{self, User};

/// Finds accounts by their identifiers, without locking them.
pub(super) type UserLookups = Lookups<UserId, User>;

/// Starts [`UserLookups`].
pub(crate) fn user_lookups(database: Database, limits: BatchLimits) -> UserLookups {
    database::lookups(database, limits, store::find_all)
}

/// The user of a token.
pub(super) async fn read_current(lookups: &UserLookups, id: UserId) -> Result<User, AccountError> {
    read(lookups, id).await.map_err(|error| match error {
        AccountError::NotFound => AccountError::CallerGone,
        other => other,
    })
}

pub(super) async fn read(lookups: &UserLookups, id: UserId) -> Result<User, AccountError> {
    let found = lookups.run(id).await?;
    found.ok_or(AccountError::NotFound)
}
