use database::Connection;
use values::UserId;

use super::error::AccountError;
use super::store::{self, User};
use super::token::revoke_earlier_tokens;
use crate::audit::{AuditAction, RequestActor};
use crate::context::Context;

/// Revokes the access tokens of a user, who can sign in again.
#[tracing::instrument(skip_all, fields(user.id = %id))]
pub(super) async fn revoke_tokens(
    context: &Context,
    id: UserId,
    actor: RequestActor,
) -> Result<User, AccountError> {
    let entry = actor.entry(AuditAction::TokensRevoked, id);
    let revoke = move |connection: &mut Connection| {
        store::revoke_tokens(connection, id, entry)?.ok_or(AccountError::NotFound)
    };
    let user = context.database.transaction(revoke).await?;
    revoke_earlier_tokens(context, &user);
    tracing::info!("a user's tokens were revoked");
    Ok(user)
}
