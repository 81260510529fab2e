use std::time::Duration;

use database::{Connection, Database};
use tokio_util::sync::CancellationToken;

use crate::deliveries::worker::retention_store as store;

/// How often partitions are created and dropped, and how soon after a failure.
const PAUSE: Duration = Duration::from_secs(3_600);
const PAUSE_AFTER_FAILURE: Duration = Duration::from_secs(60);

/// Keeps the partitions of `finished_deliveries` until it is cancelled: those of the next two weeks exist, and those
/// whose deliveries have all been finished for longer than `keep` are dropped.
pub(super) async fn maintain(database: Database, keep: Duration, shutdown: CancellationToken) {
    let maintain = move |connection: &mut Connection| store::maintain(connection, keep);
    loop {
        let mut pause = PAUSE;
        match database.run(maintain).await {
            Ok(0) => {}
            Ok(dropped) => tracing::info!(dropped, "dropped partitions of old deliveries"),
            Err(error) => {
                tracing::warn!(error = ?error, "the partitions of deliveries could not be maintained");
                pause = PAUSE_AFTER_FAILURE;
            }
        }
        tokio::select! {
            () = tokio::time::sleep(pause) => {}
            () = shutdown.cancelled() => return,
        }
    }
}
