use database::Connection;
use values::UserId;

use super::error::AccountError;
use super::store::{self, User};
use crate::context::Context;

/// The user of a token.
pub(super) async fn read_current(context: &Context, id: UserId) -> Result<User, AccountError> {
    read(context, id).await.map_err(|error| match error {
        AccountError::NotFound => AccountError::CallerGone,
        other => other,
    })
}

pub(super) async fn read(context: &Context, id: UserId) -> Result<User, AccountError> {
    let find = move |connection: &mut Connection| {
        store::find(connection, id)?.ok_or(AccountError::NotFound)
    };
    context.database.run(find).await
}
