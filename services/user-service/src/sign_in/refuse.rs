use audit_log::{Actor, AuthMethod, RequestMeta};
use database::Connection;
use serde_json::json;
use values::UserId;

use super::store;
use crate::accounts;
use crate::audit::AuditAction;
use crate::client_network::ClientNetwork;
use crate::context::Context;
use crate::error::UserError;

/// The reason that the audit log gives for the right password of an inactive account.
const INACTIVE: &str = "account-inactive";
/// How many refusals of unknown names are logged for one client network and hour.
const LOGGED_FOR_UNKNOWN_NAMES: i32 = 60;
/// How many refusals of users are logged for one client network and hour. They are kept for longer, but a
/// network would need many users for so many, because each user's attempts must wait.
const LOGGED_FOR_USERS: i32 = 600;

/// Records a refused attempt and returns its error.
pub(super) async fn refuse(
    context: &Context,
    user: Option<UserId>,
    meta: RequestMeta,
    refusal: UserError,
) -> UserError {
    let reason = match refusal {
        UserError::AccountInactive => INACTIVE,
        _ => "invalid-credentials",
    };
    match record_refusal(context, user, meta, reason).await {
        Ok(()) => refusal,
        Err(error) => error.into(),
    }
}

/// Records a refused attempt to prove a password. The same statements run for an unknown name.
///
/// One client network cannot fill the audit log: the last entry that it gets within an hour says that it
/// reached the limit.
pub(crate) async fn record_refusal(
    context: &Context,
    user: Option<UserId>,
    meta: RequestMeta,
    reason: &'static str,
) -> Result<(), database::Error> {
    let client = ClientNetwork::of(&meta);
    // A new identifier belongs to no user.
    let id = user.unwrap_or_else(UserId::generate);
    let record = move |connection: &mut Connection| {
        let user = accounts::store::lock_against_deletion(connection, id)?;
        let limit = if user.is_some() {
            LOGGED_FOR_USERS
        } else {
            LOGGED_FOR_UNKNOWN_NAMES
        };
        let refusals = store::count_refusal(connection, &client, user.is_some())?;
        if refusals > limit {
            metrics::counter!("sign_in_refusals_not_logged_total").increment(1);
            return Ok::<_, database::Error>(());
        }
        let entry = AuditAction::SignInRefused.entry(Actor::Anonymous, user, meta);
        let entry = if reason == INACTIVE {
            entry.authenticated_by(AuthMethod::Password)
        } else {
            entry
        };
        let detail = if refusals == limit {
            json!({"reason": reason, "limitReached": true})
        } else {
            json!({"reason": reason})
        };
        entry.detail(detail).record(connection)?;
        Ok(())
    };
    context.database.transaction(record).await
}
