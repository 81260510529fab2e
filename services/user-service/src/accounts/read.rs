use values::UserId;

use super::error::AccountError;
use super::store::User;
use crate::context::Context;

/// The user of a token.
pub(super) async fn read_current(context: &Context, id: UserId) -> Result<User, AccountError> {
    read(context, id).await.map_err(|error| match error {
        AccountError::NotFound => AccountError::CallerGone,
        other => other,
    })
}

pub(super) async fn read(context: &Context, id: UserId) -> Result<User, AccountError> {
    let found = context.users.find(id).await?;
    found.ok_or(AccountError::NotFound)
}
