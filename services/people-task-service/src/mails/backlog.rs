use std::time::Duration;

use database::Database;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use crate::mails::store;

const INTERVAL: Duration = Duration::from_secs(15);

/// Keeps the gauge of the backlog up to date until it is cancelled. It grows when no notification worker sends.
pub(crate) async fn watch(database: Database, shutdown: CancellationToken) {
    while !shutdown.is_cancelled() {
        match database.run(store::oldest_due).await {
            Ok(seconds) => metrics::gauge!("task_mails_oldest_due_seconds").set(seconds),
            Err(error) => {
                tracing::debug!(error = ?error, "the mails that are due could not be read");
            }
        }
        shutdown.run_until_cancelled(sleep(INTERVAL)).await;
    }
}
