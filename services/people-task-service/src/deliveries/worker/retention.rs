use std::time::Duration;

use database::Database;
use tokio_util::sync::CancellationToken;

use crate::deliveries::worker::store;

/// How often old deliveries are looked for.
const PAUSE: Duration = Duration::from_secs(60);
/// Deliveries that one statement deletes.
const BATCH: i64 = 1_000;
/// Between two batches, so that deleting never takes the database from delivering.
const BREATH: Duration = Duration::from_millis(200);

/// Deletes what finished longer ago than `retention`, until it is cancelled.
pub(super) async fn run(database: Database, retention: Duration, shutdown: CancellationToken) {
    while !shutdown.is_cancelled() {
        let purge = move |connection: &mut _| -> Result<_, database::Error> {
            Ok(store::purge(connection, retention, BATCH)?)
        };
        let deleted = database.run(purge).await.unwrap_or_else(|error| {
            tracing::warn!(error = ?error, "old deliveries cannot be deleted just now");
            0
        });
        if deleted > 0 {
            tracing::info!(deleted, "deleted old deliveries");
        }
        let full = i64::try_from(deleted).is_ok_and(|deleted| deleted >= BATCH);
        tokio::select! {
            () = tokio::time::sleep(if full { BREATH } else { PAUSE }) => {}
            () = shutdown.cancelled() => {}
        }
    }
}
