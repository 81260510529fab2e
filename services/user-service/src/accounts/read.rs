//! Accounts as they are: one, a page of a list, or how many there are.

use database::{Connection, Database, Lookups};
use listing::{Page, PageLimits};
use values::UserId;

use super::list_query::{
    MAX_SORTED_USERS, UserConditions, UserListQuery, may_sort_many, offset_too_high,
};
use super::store::{self, User};
use crate::error::UserError;

/// Finds accounts by their identifiers, without locking them.
pub(super) type UserLookups = Lookups<UserId, User>;

pub(super) async fn read_current(lookups: &UserLookups, id: UserId) -> Result<User, UserError> {
    read(lookups, id).await.map_err(|error| match error {
        UserError::NotFound(_) => UserError::CallerGone,
        other => other,
    })
}

pub(super) async fn read(lookups: &UserLookups, id: UserId) -> Result<User, UserError> {
    let found = lookups.run(id).await?;
    found.ok_or(UserError::NotFound("user"))
}

/// One page of users of at most `bytes`.
pub(super) async fn list(
    database: Database,
    query: UserListQuery,
    bytes: usize,
) -> Result<Page<User>, UserError> {
    let list = move |connection: &mut Connection| {
        if may_sort_many(&query) && store::count_all(connection)? > MAX_SORTED_USERS {
            return Err(offset_too_high());
        }
        let paging = query.paging;
        let limits = PageLimits { paging, bytes };
        Ok(store::list(connection, &query, limits)?)
    };
    database.run(list).await
}

pub(super) async fn count(
    database: Database,
    conditions: UserConditions,
) -> Result<i64, UserError> {
    let count = move |connection: &mut Connection| Ok(store::count(connection, &conditions)?);
    database.run(count).await
}
