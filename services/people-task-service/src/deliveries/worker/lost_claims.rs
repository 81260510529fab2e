//! Releases the claims of workers that ended. It has time: no beat waits for it.

use std::time::Duration;

use database::{Connection, Database, Error};
use tokio::sync::mpsc;

use crate::deliveries::worker::lost_claims_store as store;
use crate::deliveries::worker::membership::Silent;
use crate::deliveries::worker::report;

/// The pause after a failure.
const PAUSE: Duration = Duration::from_secs(1);

/// Deletes the workers that it is told of and that are still silent, and releases their claims, until no more can come.
/// At first it releases claims of workers that have no row, which should not exist.
pub(super) async fn release(
    database: Database,
    silence: Duration,
    mut silent: mpsc::Receiver<Silent>,
) {
    while !report_released(&database.transaction(store::release_unknown).await) {
        tokio::time::sleep(PAUSE).await;
    }
    while let Some(workers) = silent.recv().await {
        let release =
            move |connection: &mut Connection| store::release(connection, &workers, silence);
        report_released(&database.transaction(release).await);
    }
}

/// Reports what was released; `false` if it failed.
fn report_released(released: &Result<store::Released, Error>) -> bool {
    match released {
        Ok(released) => report::released(released),
        Err(error) => error.warn("the claims of workers that ended could not be released"),
    }
    released.is_ok()
}
