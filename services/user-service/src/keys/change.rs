//! Ends keys, and confirms them: after a restore they are off, until an administrator turns them on again.

use database::{Connection, Error};
use serde_json::json;
use values::{CredentialId, UserId};

use super::{record_event, store};
use crate::audit::{AuditAction, RequestActor};
use crate::context::Context;
use crate::credentials::CredentialKind;
use crate::credentials::store as credentials;
use crate::error::UserError;

/// Keys that one transaction confirms.
const BATCH: i64 = 200;

/// Ends a key of a user. Its tokens are refused within a second.
#[tracing::instrument(skip_all, fields(user.id = %user))]
pub(super) async fn end(
    context: &Context,
    user: UserId,
    id: CredentialId,
    actor: RequestActor,
) -> Result<(), UserError> {
    let entry = actor.entry(AuditAction::KeyEnded, user);
    let entry = entry.detail(json!({"endedKey": id}));
    let end = move |connection: &mut Connection| {
        credentials::end(connection, user, CredentialKind::Key, id, entry)
    };
    if !context.database.transaction(end).await? {
        return Err(UserError::NotFound("key"));
    }
    context.verifier.revocations().end([id]);
    record_event("ended");
    Ok(())
}

pub(super) async fn confirm(
    context: &Context,
    user: UserId,
    id: CredentialId,
    actor: RequestActor,
) -> Result<(), UserError> {
    let confirm = move |connection: &mut Connection| confirm_one(connection, user, id, actor);
    if !context.database.transaction(confirm).await? {
        return Err(UserError::NotFound("key"));
    }
    record_event("confirmed");
    Ok(())
}

/// Confirms the keys of all users, and returns their number. If it fails on the way, some are confirmed.
pub(super) async fn confirm_all(context: &Context, actor: RequestActor) -> Result<usize, Error> {
    let (mut total, mut after) = (0, None);
    loop {
        let actor = actor.clone();
        let confirm = move |connection: &mut Connection| {
            let keys = store::unconfirmed(connection, after, BATCH)?;
            for (id, user) in &keys {
                confirm_one(connection, *user, *id, actor.clone())?;
            }
            Ok::<_, Error>(keys)
        };
        let confirmed = context.database.transaction(confirm).await?;
        let Some((last, _)) = confirmed.last() else {
            return Ok(total);
        };
        after = Some(*last);
        total += confirmed.len();
        confirmed.iter().for_each(|_| record_event("confirmed"));
    }
}

fn confirm_one(
    connection: &mut Connection,
    user: UserId,
    id: CredentialId,
    actor: RequestActor,
) -> Result<bool, Error> {
    let entry = actor.entry(AuditAction::KeyConfirmed, user);
    let entry = entry.detail(json!({"confirmedKey": id}));
    store::confirm(connection, user, id, entry)
}
