use database::{Connection, Database, RowLimit};
use listing::Page;

use super::error::AccountError;
use super::list_query::{MAX_SORTED_USERS, UserConditions, UserListQuery, may_sort_many};
use super::store::{self, User};

/// One page of users of at most `max_bytes`.
pub(super) async fn list(
    database: Database,
    query: UserListQuery,
    max_bytes: usize,
) -> Result<Page<User>, AccountError> {
    let paging = query.paging;
    let limit = RowLimit::new(paging.limit, max_bytes);
    let list = move |connection: &mut Connection| {
        if may_sort_many(&query) && store::count_all(connection)? > MAX_SORTED_USERS {
            return Err(AccountError::OffsetTooHigh);
        }
        let users = store::list(connection, &query, limit)?;
        Ok(paging.page(users.rows, users.found))
    };
    database.run(list).await
}

pub(super) async fn count(
    database: Database,
    conditions: UserConditions,
) -> Result<i64, AccountError> {
    let count = move |connection: &mut Connection| Ok(store::count(connection, &conditions)?);
    database.run(count).await
}
