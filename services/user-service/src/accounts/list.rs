use database::Connection;
use listing::{Conditions, ListQuery, Page};

use super::error::AccountError;
use super::requests::{UserFilter, UserSort};
use super::store::{self, User};
use crate::context::Context;

pub(super) async fn list(
    context: &Context,
    query: ListQuery<UserSort, UserFilter>,
) -> Result<Page<User>, AccountError> {
    let paging = query.paging;
    let list =
        move |connection: &mut Connection| Ok::<_, AccountError>(store::list(connection, &query)?);
    Ok(paging.page(context.database.run(list).await?))
}

pub(super) async fn count(
    context: &Context,
    conditions: Conditions<UserFilter>,
) -> Result<i64, AccountError> {
    let count = move |connection: &mut Connection| Ok(store::count(connection, &conditions)?);
    context.database.run(count).await
}
