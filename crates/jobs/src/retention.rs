use std::time::Duration;

use database::Database;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use crate::store::{self, RetentionRule};

/// Rows that one statement deletes: small enough that no statement holds locks for long.
const BATCH: i64 = 1_000;
const BATCH_PAUSE: Duration = Duration::from_millis(100);
const MIN_PAUSE: Duration = Duration::from_secs(1);
const MAX_PAUSE: Duration = Duration::from_secs(60);

/// Deletes old rows until it is cancelled.
pub async fn retain(database: Database, rules: Vec<RetentionRule>, shutdown: CancellationToken) {
    let keeps = rules.iter().map(|rule| rule.keep / 4);
    let shortest = keeps.filter(|keep| !keep.is_zero()).min();
    let pause = shortest.unwrap_or(MAX_PAUSE).clamp(MIN_PAUSE, MAX_PAUSE);
    while !shutdown.is_cancelled() {
        for rule in &rules {
            apply(&database, *rule, &shutdown).await;
        }
        shutdown.run_until_cancelled(sleep(pause)).await;
    }
}

async fn apply(database: &Database, rule: RetentionRule, shutdown: &CancellationToken) {
    let (table, mut total) = (rule.table, 0);
    while !shutdown.is_cancelled() {
        let delete = move |connection: &mut _| store::delete_old(connection, rule, BATCH);
        match database.run(delete).await {
            Ok(deleted) => {
                total += deleted;
                if i64::try_from(deleted).is_ok_and(|deleted| deleted < BATCH) {
                    break;
                }
            }
            Err(error) => {
                error.warn("old rows could not be deleted");
                break;
            }
        }
        shutdown.run_until_cancelled(sleep(BATCH_PAUSE)).await;
    }
    metrics::counter!("retention_deleted_total", "table" => table)
        .increment(u64::try_from(total).unwrap_or(u64::MAX));
    if total > 0 {
        tracing::info!(table, rows = total, "old rows deleted");
    }
}
