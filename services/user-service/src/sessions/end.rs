use audit_log::RequestMeta;
use database::{Connection, Error};
use serde_json::json;
use values::{CredentialId, UserId};

use super::requests::browser::Browser;
use super::{entry, record_event, store};
use crate::audit::{AuditAction, RequestActor};
use crate::context::Context;
use crate::credentials::CredentialKind;
use crate::credentials::store as credentials;

/// Ends the session of a browser, if it has one.
#[tracing::instrument(skip_all)]
pub(super) async fn end_own(
    context: &Context,
    browser: Browser,
    meta: RequestMeta,
) -> Result<(), Error> {
    let end = move |connection: &mut Connection| end_earlier(connection, &browser, &meta);
    let ended = context.database.transaction(end).await?;
    note_ended(context, ended);
    Ok(())
}

/// Ends a session of a user. `false` if it has ended, or is another user's.
#[tracing::instrument(skip_all, fields(user.id = %user))]
pub(super) async fn end_one(
    context: &Context,
    user: UserId,
    id: CredentialId,
    actor: RequestActor,
) -> Result<bool, Error> {
    let entry = actor.entry(AuditAction::SessionEnded, user);
    let entry = entry.detail(json!({"session": id}));
    let end = move |connection: &mut Connection| {
        credentials::end(connection, user, CredentialKind::Session, id, entry)
    };
    let has_ended = context.database.transaction(end).await?;
    note_ended(context, has_ended.then_some(id));
    Ok(has_ended)
}

/// Ends the session of a browser's cookie. Returns the sessions that ended.
pub(super) fn end_earlier(
    connection: &mut Connection,
    browser: &Browser,
    meta: &RequestMeta,
) -> Result<Vec<CredentialId>, Error> {
    let Some(cookie) = &browser.cookie else {
        return Ok(Vec::new());
    };
    let Some(session) = store::lock(connection, cookie.fingerprint())? else {
        return Ok(Vec::new());
    };
    let entry = entry(AuditAction::SessionEnded, session.user, session.id, meta);
    let kind = CredentialKind::Session;
    credentials::end(connection, session.user, kind, session.id, entry)?;
    Ok(vec![session.id])
}

/// Makes this process refuse the tokens of sessions at once. Other processes read the feed.
pub(super) fn note_ended(context: &Context, ended: impl IntoIterator<Item = CredentialId>) {
    let ended = ended.into_iter().inspect(|_| record_event("ended"));
    context.verifier.revocations().end(ended);
}
