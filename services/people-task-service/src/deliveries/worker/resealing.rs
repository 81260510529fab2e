//! Seals headers of webhooks again that an earlier key sealed, so that operators can remove that key.

use std::time::Duration;

use database::{Connection, Database, Error};
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use crate::deliveries::worker::report;
use crate::deliveries::worker::resealing_store::{self as store, SealedRow};
use crate::header_keys::HeaderKeys;
use crate::webhook_options::WebhookOptions;

/// How often a worker looks for such webhooks.
const PAUSE: Duration = Duration::from_secs(30);
/// How many webhooks one round handles, each in a transaction of its own.
const BATCH: i64 = 200;

/// Seals headers again with the first key, until it is cancelled.
pub(super) async fn watch(database: Database, keys: HeaderKeys, shutdown: CancellationToken) {
    while !shutdown.is_cancelled() {
        let resealed = round(&database, &keys).await.unwrap_or_else(|error| {
            error.warn("headers could not be sealed again");
            0
        });
        if resealed > 0 {
            tracing::info!(
                webhooks = resealed,
                "sealed headers again with the first key"
            );
            continue;
        }
        shutdown.run_until_cancelled(sleep(PAUSE)).await;
    }
}

/// Handles a batch, reports how many are left, and returns how many it sealed again.
async fn round(database: &Database, keys: &HeaderKeys) -> Result<usize, Error> {
    let mut ids = keys.ids().into_iter();
    let Some(current) = ids.next() else {
        return Ok(0);
    };
    let earlier: Vec<_> = ids.collect();
    let mut resealed = 0;
    if !earlier.is_empty() {
        let load =
            move |connection: &mut Connection| store::load_sealed_by(connection, &earlier, BATCH);
        for row in database.run(load).await? {
            let keys = keys.clone();
            let reseal = move |connection: &mut Connection| reseal(connection, &keys, &row);
            resealed += usize::from(database.run(reseal).await?);
        }
    }
    let count = move |connection: &mut Connection| store::count_of_others(connection, &current);
    report::headers_of_earlier_keys(database.run(count).await?);
    Ok(resealed)
}

fn reseal(connection: &mut Connection, keys: &HeaderKeys, row: &SealedRow) -> Result<bool, Error> {
    let options = WebhookOptions::parse(&row.options).ok();
    let Some(options) = options.and_then(|options| options.resealed(keys, row.id)) else {
        return Ok(false);
    };
    let key = options.header_key().unwrap_or_default();
    store::replace(connection, row, &options.to_text(), key)
}
