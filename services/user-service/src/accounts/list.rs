use database::Connection;
use listing::Page;

use super::error::AccountError;
use super::list_query::{UserConditions, UserListQuery};
use super::store::{self, User};
use crate::context::Context;

pub(super) async fn list(
    context: &Context,
    query: UserListQuery,
) -> Result<Page<User>, AccountError> {
    let paging = query.paging;
    let list =
        move |connection: &mut Connection| Ok::<_, AccountError>(store::list(connection, &query)?);
    Ok(paging.page(context.database.run(list).await?))
}

pub(super) async fn count(
    context: &Context,
    conditions: UserConditions,
) -> Result<i64, AccountError> {
    let count = move |connection: &mut Connection| Ok(store::count(connection, &conditions)?);
    context.database.run(count).await
}
