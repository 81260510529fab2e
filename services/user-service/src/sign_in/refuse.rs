use audit_log::{Actor, AuthMethod};
use database::Connection;
use serde_json::json;
use values::UserId;

use super::attempt::Attempt;
use super::error::SignInError;
use super::store;
use crate::accounts;
use crate::audit::AuditAction;
use crate::context::Context;

/// How many refusals of unknown names are logged for one client network and hour.
const LOGGED_FOR_UNKNOWN_NAMES: i32 = 60;
/// How many refusals of users are logged for one client network and hour. They are kept for longer, but a
/// network would need many users for so many, because each user's attempts must wait.
const LOGGED_FOR_USERS: i32 = 600;

/// Records a refused attempt and returns its error. The same statements run for an unknown name.
///
/// One client network cannot fill the audit log: the last entry that it gets within an hour says that it
/// reached the limit.
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
        let limit = if user.is_some() {
            LOGGED_FOR_USERS
        } else {
            LOGGED_FOR_UNKNOWN_NAMES
        };
        let refusals = store::count_refusal(connection, &attempt.client, user.is_some())?;
        if refusals > limit {
            metrics::counter!("sign_in_refusals_not_logged_total").increment(1);
            return Ok::<_, database::Error>(());
        }
        let entry = AuditAction::SignInRefused.entry_about(Actor::Anonymous, user, attempt.meta);
        let (entry, reason) = if inactive {
            let entry = entry.authenticated_by(AuthMethod::Password);
            (entry, "account-inactive")
        } else {
            (entry, "invalid-credentials")
        };
        let detail = if refusals == limit {
            json!({"reason": reason, "limitReached": true})
        } else {
            json!({"reason": reason})
        };
        entry.detail(detail).record(connection)?;
        Ok(())
    };
    match context.database.transaction(record).await {
        Ok(()) => refusal,
        Err(error) => error.into(),
    }
}
