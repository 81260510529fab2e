use database::{Connection, Database};
use listing::{Page, PageLimits};

use super::list_query::{MAX_SORTED_USERS, UserListQuery, may_sort_many, offset_too_high};
use super::store::{self, User};
use crate::error::UserError;

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
