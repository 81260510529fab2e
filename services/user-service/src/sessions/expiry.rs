use std::time::Duration;

use database::{Connection, Database, Error};
use tokio_util::sync::CancellationToken;

use crate::credentials::store;

const INTERVAL: Duration = Duration::from_secs(600);
/// Rows that one statement deletes.
const BATCH: i64 = 1_000;

/// Deletes sessions that have expired, until it is cancelled.
pub(crate) async fn forget_expired(database: Database, shutdown: CancellationToken) {
    loop {
        if let Err(error) = delete_expired(&database).await {
            error.warn("expired sessions could not be deleted");
        }
        tokio::select! {
            () = tokio::time::sleep(INTERVAL) => {}
            () = shutdown.cancelled() => return,
        }
    }
}

async fn delete_expired(database: &Database) -> Result<(), Error> {
    loop {
        let delete = |connection: &mut Connection| store::delete_expired(connection, BATCH);
        let deleted = database.run(delete).await?;
        if i64::try_from(deleted).is_ok_and(|deleted| deleted < BATCH) {
            return Ok(());
        }
    }
}
