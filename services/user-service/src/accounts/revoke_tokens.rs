use database::Connection;
use values::UserId;

use super::error::AccountError;
use super::store::{self, User};
use super::token::revoke_earlier_tokens;
use crate::audit::{AuditAction, RequestActor};
use crate::context::Context;
use crate::credentials::store as credentials;

/// Revokes the access tokens of a user, who can sign in again, and ends a person's API keys. Those of a service account have
/// to be ended one by one: it has nothing else.
#[tracing::instrument(skip_all, fields(user.id = %id))]
pub(super) async fn revoke_tokens(
    context: &Context,
    id: UserId,
    actor: RequestActor,
) -> Result<User, AccountError> {
    let entry = actor.entry(AuditAction::TokensRevoked, id);
    let revoke = move |connection: &mut Connection| {
        let user = store::revoke_tokens(connection, id, entry)?.ok_or(AccountError::NotFound)?;
        if !user.is_service {
            credentials::end_keys(connection, id)?;
        }
        Ok::<_, AccountError>(user)
    };
    let user = context.database.transaction(revoke).await?;
    revoke_earlier_tokens(context, &user);
    tracing::info!("a user's tokens were revoked");
    Ok(user)
}
