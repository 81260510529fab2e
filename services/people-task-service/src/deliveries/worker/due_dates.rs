//! Finds tasks whose due date passes while they are pending, and adds deliveries of the event `due`.
//!
//! `due_dates` has a row for each webhook that waits for such a date, so webhooks and tasks that wait for none cost
//! nothing. The row is deleted by the transaction that inserts the delivery, and that is the only one that may.

use std::time::Duration;

use database::{Connection, Database, Error};
use telemetry::RequestContext;
use tokio::sync::mpsc;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use crate::deliveries::DueDelivery;
use crate::deliveries::worker::due_dates_store as store;
use crate::deliveries::worker::report;

/// How often due dates are looked at. Looking at none takes one step in an index.
const PAUSE: Duration = Duration::from_secs(1);
/// How many webhooks one transaction handles at most.
const BATCH: usize = 200;

/// Adds deliveries for due dates that have passed, and tells the dispatcher about them, until it is cancelled.
pub(super) async fn watch(
    database: Database,
    due: mpsc::Sender<Vec<DueDelivery>>,
    shutdown: CancellationToken,
) {
    while !shutdown.is_cancelled() {
        let handled = handle_batch(&database, &due).await;
        let handled = handled.inspect_err(|error| error.warn("due dates could not be looked at"));
        // There may be more.
        if handled.unwrap_or_default() == 0 {
            shutdown.run_until_cancelled(sleep(PAUSE)).await;
        }
    }
}

/// Handles a batch of webhooks whose due date has passed, and returns their number.
async fn handle_batch(
    database: &Database,
    due: &mpsc::Sender<Vec<DueDelivery>>,
) -> Result<usize, Error> {
    if !database.run(store::has_passed).await? {
        return Ok(0);
    }
    let contexts: Vec<_> = (0..BATCH).map(|_| RequestContext::fresh()).collect();
    let handle = move |connection: &mut Connection| store::handle_passed(connection, &contexts);
    let handled = database.transaction(handle).await?;
    let number = handled.len();
    let deliveries: Vec<_> = handled.into_iter().flatten().collect();
    if !deliveries.is_empty() {
        report::due_dates_passed(deliveries.len());
        // If the dispatcher has ended, another worker finds them.
        let _ = due.send(deliveries).await;
    }
    Ok(number)
}
