use database::Connection;

use super::error::DeletionError;
use super::store;
use crate::audit::{AuditAction, RequestActor};
use crate::context::Context;

/// Deletions that one transaction starts again.
const BATCH: usize = 100;
/// Deletions that one call starts again.
const MAX_PER_CALL: usize = 1_000;

/// The result of one call.
#[derive(Debug, Clone, Copy)]
pub(super) struct Retried {
    /// The deletions that are in progress again.
    pub(super) retried: usize,
    /// Whether there are more.
    pub(super) more: bool,
}

/// Starts failed deletions again, at the step that failed. Deletions of users who were reactivated since then stay as
/// they are, and so do those that would skip the flow engine.
#[tracing::instrument(skip_all)]
pub(super) async fn retry_failed(
    context: &Context,
    actor: RequestActor,
) -> Result<Retried, DeletionError> {
    let (mut retried, with_engine) = (0, context.has_engine);
    while retried < MAX_PER_CALL {
        let actor = actor.clone();
        let entry = move |user| {
            let entry = actor.clone().entry(AuditAction::DeletionRequested, user);
            entry.detail(serde_json::json!({ "retried": true }))
        };
        let retry = move |connection: &mut Connection| {
            store::retry_failed(connection, BATCH, with_engine, entry)
        };
        let batch = context.database.transaction(retry).await?;
        retried += batch;
        if batch < BATCH {
            break;
        }
    }
    tracing::info!(retried, "failed deletions were started again");
    let more = move |connection: &mut Connection| store::has_retryable(connection, with_engine);
    let more = context.database.run(more).await?;
    Ok(Retried { retried, more })
}
