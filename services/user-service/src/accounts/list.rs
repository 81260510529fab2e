use database::Connection;
use listing::{Page, PageLimits};

use super::list_query::{MAX_SORTED_USERS, UserListQuery, may_sort_many, offset_too_high};
use super::store::{self, User};
use crate::error::UserError;

/// One page of users.
pub(super) fn list(
    connection: &mut Connection,
    query: &UserListQuery,
    limits: PageLimits,
) -> Result<Page<User>, UserError> {
    if may_sort_many(query) && store::count_all(connection)? > MAX_SORTED_USERS {
        return Err(offset_too_high());
    }
    Ok(store::list(connection, query, limits)?)
}
