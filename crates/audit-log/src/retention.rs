//! Deletes rows by age. What the deletion of a user changes is in `store.rs`: `pseudonymise` and
//! `forget_addresses`.

use std::time::Duration;

use app_config::Reader;
use database::{Connection, Database, Error};
use tokio_util::sync::CancellationToken;

use crate::store::{self, BATCH};

/// How often old rows are deleted.
const INTERVAL: Duration = Duration::from_secs(60);
/// The pause between two batches, so that pruning does not slow down the service.
const BATCH_PAUSE: Duration = Duration::from_millis(200);
const DAY: u64 = 24 * 60 * 60;

/// Reads `AUDIT_RETENTION`.
///
/// # Errors
/// The value is not a duration from 30 days to 100 years.
pub fn read_retention(reader: &mut Reader) -> Result<Duration, app_config::Error> {
    reader.in_range(
        "AUDIT_RETENTION",
        "400d",
        "a duration from 30d to 36500d",
        "How long rows of the audit log are kept.",
        |keep: &Duration| (30 * DAY..=36_500 * DAY).contains(&keep.as_secs()),
    )
}

/// Deletes rows that are older than `keep`, batch by batch, until it is cancelled. Several replicas may run it
/// at the same time.
pub async fn retain(database: Database, keep: Duration, shutdown: CancellationToken) {
    while !shutdown.is_cancelled() {
        let prune = move |connection: &mut Connection| Ok(store::prune(connection, keep)?);
        let pruned = database.run(prune).await.unwrap_or_else(|error: Error| {
            tracing::warn!(error = ?error, "cannot prune the audit log");
            0
        });
        if pruned > 0 {
            tracing::info!(rows = pruned, "pruned old rows of the audit log");
            metrics::counter!("retention_deleted_total", "table" => "audit_log")
                .increment(u64::try_from(pruned).unwrap_or(0));
        }
        let more = pruned >= i64::from(BATCH);
        tokio::select! {
            () = tokio::time::sleep(if more { BATCH_PAUSE } else { INTERVAL }) => {}
            () = shutdown.cancelled() => {}
        }
    }
}
