//! Calls that try webhooks. The service inserts them and waits for the result. They are few, so they have no part in the
//! scheduling of deliveries, and each is made at most once.

use std::sync::Arc;
use std::time::Duration;

use database::{Connection, Database, Error};
use telemetry::RequestContext;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use crate::deliveries::test_store;
use crate::deliveries::worker::call::Sender;
use crate::deliveries::worker::due_store::{self, DueRow};
use crate::deliveries::worker::report;

/// How often a worker looks for calls. Looking at none takes one step in an index.
const PAUSE: Duration = Duration::from_millis(300);
/// How many calls a worker takes at a time.
const BATCH: i64 = 16;

/// Makes the calls that users request, until it is cancelled.
pub(super) async fn watch(database: Database, sender: Arc<Sender>, shutdown: CancellationToken) {
    while !shutdown.is_cancelled() {
        match database.run(take).await {
            Ok(rows) => {
                for row in rows.into_iter().map(Box::new) {
                    tokio::spawn(make(database.clone(), Arc::clone(&sender), row));
                }
            }
            Err(error) => error.warn("calls that try webhooks could not be looked for"),
        }
        shutdown.run_until_cancelled(sleep(PAUSE)).await;
    }
}

fn take(connection: &mut Connection) -> Result<Vec<DueRow>, Error> {
    let taken = test_store::take(connection, BATCH)?;
    if taken.is_empty() {
        return Ok(Vec::new());
    }
    Ok(due_store::load(connection, due_store::TESTS, &taken)?)
}

async fn make(database: Database, sender: Arc<Sender>, row: Box<DueRow>) {
    let id = row.delivery_id;
    let context = RequestContext::continued(Some(&row.request_id), Some(&row.traceparent));
    let result = sender.test(row, &context).await;
    report::webhook_tested(id, &context, &result);
    let record = move |connection: &mut Connection| test_store::record(connection, id, &result);
    if let Err(error) = database.run(record).await {
        error.warn("the result of a call that tried a webhook could not be recorded");
    }
}
