use audit_log::RequestMeta;
use auth::Caller;
use database::Connection;
use serde_json::json;
use values::{CredentialId, UserId};

use super::error::KeyError;
use super::record_event;
use crate::audit::{AuditAction, RequestActor};
use crate::context::Context;
use crate::credentials::CredentialKind;
use crate::credentials::store as credentials;

/// Ends a key of a user. Its tokens are refused within a second.
#[tracing::instrument(skip_all, fields(user.id = %user))]
pub(super) async fn end(
    context: &Context,
    user: UserId,
    id: CredentialId,
    caller: &Caller,
    meta: RequestMeta,
) -> Result<(), KeyError> {
    let entry = RequestActor::new(caller, meta).entry(AuditAction::KeyEnded, user);
    let entry = entry.detail(json!({"endedKey": id}));
    let end = move |connection: &mut Connection| {
        credentials::end(connection, user, CredentialKind::Key, id, entry)
    };
    if !context.database.transaction(end).await? {
        return Err(KeyError::NoKey);
    }
    context.verifier.revocations().end([id]);
    record_event("ended");
    Ok(())
}
