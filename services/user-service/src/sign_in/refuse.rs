use audit_log::{Actor, AuthMethod};
use database::Connection;
use serde_json::json;
use values::UserId;

use super::attempt::Attempt;
use super::error::SignInError;
use crate::accounts;
use crate::audit::AuditAction;
use crate::context::Context;

/// Records a refused attempt and returns its error. The same statements run for an unknown name.
pub(super) async fn refuse(
    context: &Context,
    user: Option<UserId>,
    attempt: Attempt,
    refusal: SignInError,
) -> SignInError {
    let inactive = matches!(refusal, SignInError::Inactive);
    // A new identifier belongs to no user.
    let id = user.unwrap_or_else(UserId::generate);
    let record = move |connection: &mut Connection| {
        let user = accounts::store::lock_against_deletion(connection, id)?;
        let entry = AuditAction::SignInRefused.entry_about(Actor::Anonymous, user, attempt.meta);
        let (entry, reason) = if inactive {
            let entry = entry.authenticated_by(AuthMethod::Password);
            (entry, "account-inactive")
        } else {
            (entry, "invalid-credentials")
        };
        entry.detail(json!({"reason": reason})).record(connection)?;
        Ok::<_, database::Error>(())
    };
    match context.database.transaction(record).await {
        Ok(()) => refusal,
        Err(error) => error.into(),
    }
}
