//! Deletes rows by age. What the deletion of a user changes is in `store.rs`: `pseudonymise` and
//! `forget_addresses`.

use std::time::Duration;

use app_config::Reader;
use database::{Connection, Database, Error, interval};
use diesel::dsl::sql_query;
use diesel::prelude::*;
use diesel::sql_types::{Integer, Interval};
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use crate::store::BATCH;

/// How often partitions are created and old rows deleted, and how soon after a failure. An attempt to drop a partition
/// can hold up inserts for a moment, so it is not repeated at once.
const INTERVAL: Duration = Duration::from_secs(60 * 60);
const PAUSE_AFTER_FAILURE: Duration = Duration::from_secs(5 * 60);
/// The pause between two batches, so that deleting does not slow down the service.
const BATCH_PAUSE: Duration = Duration::from_millis(200);
const DAY: u64 = 24 * 60 * 60;

#[diesel::declare_sql_function]
extern "SQL" {
    fn drop_audit_log_partition(keep: Interval) -> Nullable<Text>;
    fn prune_audit_log(keep: Interval, most: Integer) -> BigInt;
}

/// Reads `AUDIT_RETENTION`.
///
/// # Errors
/// The value is not a duration from 30 days to 100 years.
pub fn read_retention(reader: &mut Reader) -> Result<Duration, app_config::Error> {
    reader.in_range(
        "AUDIT_RETENTION",
        "400d",
        "a duration from 30d to 36500d",
        "How long rows of the audit log are kept at least. They are deleted by the calendar month (UTC), so up to a \
         month later.",
        |keep: &Duration| (30 * DAY..=36_500 * DAY).contains(&keep.as_secs()),
    )
}

/// Keeps the partitions of the table until it is cancelled: those of the next months exist, and those whose rows are
/// all older than `keep` are dropped. Several replicas may run it at the same time.
pub async fn retain(database: Database, keep: Duration, shutdown: CancellationToken) {
    while !shutdown.is_cancelled() {
        let done = [
            create_partitions(&database).await,
            drop_partitions(&database, keep, &shutdown).await,
            prune(&database, keep, &shutdown).await,
        ];
        let mut pause = INTERVAL;
        for error in done.into_iter().filter_map(Result::err) {
            error.warn("the audit log could not be maintained");
            pause = PAUSE_AFTER_FAILURE;
        }
        shutdown.run_until_cancelled(sleep(pause)).await;
    }
}

/// Creates the partitions of this month and of the next three.
async fn create_partitions(database: &Database) -> Result<(), Error> {
    let create = |connection: &mut Connection| {
        sql_query("SELECT create_audit_log_partitions()").execute(connection)?;
        Ok(())
    };
    database.run(create).await
}

/// Drops partitions of which all rows are older than `keep`, one after the other.
async fn drop_partitions(
    database: &Database,
    keep: Duration,
    shutdown: &CancellationToken,
) -> Result<(), Error> {
    let drop = move |connection: &mut Connection| {
        let drop = diesel::select(drop_audit_log_partition(interval(keep)));
        Ok::<_, Error>(drop.get_result::<Option<String>>(connection)?)
    };
    while !shutdown.is_cancelled()
        && let Some(partition) = database.run(drop).await?
    {
        tracing::info!(partition, "dropped a partition of the audit log");
        shutdown.run_until_cancelled(sleep(BATCH_PAUSE)).await;
    }
    Ok(())
}

/// Deletes, batch by batch, rows that do not go with their partition.
async fn prune(
    database: &Database,
    keep: Duration,
    shutdown: &CancellationToken,
) -> Result<(), Error> {
    let prune = move |connection: &mut Connection| {
        let prune = diesel::select(prune_audit_log(interval(keep), BATCH));
        Ok::<_, Error>(prune.get_result::<i64>(connection)?)
    };
    while !shutdown.is_cancelled() {
        let pruned = database.run(prune).await?;
        metrics::counter!("retention_deleted_total", "table" => "audit_log")
            .increment(u64::try_from(pruned).unwrap_or(0));
        if pruned > 0 {
            tracing::info!(rows = pruned, "pruned old rows of the audit log");
        }
        if pruned < i64::from(BATCH) {
            break;
        }
        shutdown.run_until_cancelled(sleep(BATCH_PAUSE)).await;
    }
    Ok(())
}
