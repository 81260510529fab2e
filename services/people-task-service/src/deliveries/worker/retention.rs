use std::time::Duration;

use database::{Connection, Database, Error};
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use crate::deliveries::worker::results_store as store;

/// How often partitions are created and dropped, and how soon after a failure.
const PAUSE: Duration = Duration::from_secs(3_600);
const PAUSE_AFTER_FAILURE: Duration = Duration::from_secs(60);

/// Keeps the partitions of `finished_deliveries` until it is cancelled: those of the next two weeks exist, and those
/// whose deliveries have all been finished for longer than `keep` are dropped.
pub(super) async fn maintain(database: Database, keep: Duration, shutdown: CancellationToken) {
    while !shutdown.is_cancelled() {
        let mut pause = PAUSE;
        if let Err(error) = maintain_once(&database, keep).await {
            error.warn("the partitions of deliveries could not be maintained");
            pause = PAUSE_AFTER_FAILURE;
        }
        shutdown.run_until_cancelled(sleep(pause)).await;
    }
}

/// Each partition is dropped in a transaction of its own, which holds its locks for a moment only.
async fn maintain_once(database: &Database, keep: Duration) -> Result<(), Error> {
    database.run(store::create_partitions).await?;
    let drop_partition = move |connection: &mut Connection| store::drop_partition(connection, keep);
    while database.run(drop_partition).await? {
        tracing::info!("dropped a partition of old deliveries");
    }
    Ok(())
}
