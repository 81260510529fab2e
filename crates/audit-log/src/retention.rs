use std::time::Duration;

use app_config::Reader;
use chrono::{DateTime, TimeDelta, Utc};
use database::{Connection, Database, Error, interval};
use diesel::dsl::{exists, sql_query};
use diesel::prelude::*;
use diesel::sql_types::{Array, Binary, Integer, Interval};
use sha2::{Digest as _, Sha256};
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;
use values::{TaskId, UserId};

// The table that the migration creates in the schema of each service. Names are unqualified: the search path of the role
// selects the schema.
diesel::table! {
    audit_log (at, id) {
        id -> BigInt,
        at -> Timestamptz,
        action -> Text,
        actor_kind -> Text,
        actor_id -> Nullable<Binary>,
        subject_kind -> Nullable<Text>,
        subject_id -> Nullable<Binary>,
        proof -> Nullable<Text>,
        client_address -> Nullable<Inet>,
        request_id -> Text,
        detail -> Nullable<Jsonb>,
    }
}

/// The maximum number of rows that one call of a database function changes.
const BATCH: i32 = 5_000;
/// The clock of the database may have been set back, or be ahead, by as much.
const CLOCK_MARGIN: TimeDelta = TimeDelta::days(1);
/// How often partitions are created and old rows deleted, and how soon after a failure. An attempt to drop a partition
/// can hold up inserts for a moment, so it is not repeated at once.
const INTERVAL: Duration = Duration::from_secs(60 * 60);
const PAUSE_AFTER_FAILURE: Duration = Duration::from_secs(5 * 60);
/// The pause between two batches, so that deleting does not slow down the service.
const BATCH_PAUSE: Duration = Duration::from_millis(200);

/// The bytes of an identifier that was validated when it was parsed, and its pseudonym if the log has it.
///
/// The log of a user who was not deleted is read in the order of its index, which a second value would prevent.
pub(crate) fn identities(connection: &mut PgConnection, id: &str) -> QueryResult<Vec<Vec<u8>>> {
    let id = hex::decode(id).unwrap_or_default();
    let hash = Sha256::digest(&id);
    let pseudonym: Vec<u8> = hash.iter().take(id.len()).copied().collect();
    let pseudonym = has_entries(connection, &pseudonym)?.then_some(pseudonym);
    Ok([id].into_iter().chain(pseudonym).collect())
}

fn has_entries(connection: &mut PgConnection, id: &[u8]) -> QueryResult<bool> {
    // Two statements, because each has its own index.
    let acted = audit_log::table.filter(audit_log::actor_id.eq(id));
    if diesel::select(exists(acted)).get_result(connection)? {
        return Ok(true);
    }
    let concerned = audit_log::table.filter(audit_log::subject_id.eq(id));
    diesel::select(exists(concerned)).get_result(connection)
}

#[diesel::declare_sql_function]
extern "SQL" {
    fn forget_audit_addresses(tasks: Array<Binary>, most: Integer) -> BigInt;
    fn pseudonymise_audit_log(user: Binary, most: Integer) -> BigInt;
    fn drop_audit_log_partition(keep: Interval) -> Nullable<Text>;
    fn prune_audit_log(keep: Interval, most: Integer) -> BigInt;
}

/// Removes the client addresses from at most 5,000 rows: changes of these tasks, all created at `since` or later, that
/// no known user made. It does not wait for rows that other transactions hold.
///
/// # Errors
/// The database fails.
pub fn forget_addresses(
    connection: &mut PgConnection,
    tasks: &[TaskId],
    since: DateTime<Utc>,
) -> QueryResult<Changes> {
    // Usually there is none, and this takes half as long as changing some. No other partitions are looked at than those
    // of this time.
    let until = Utc::now() + CLOCK_MARGIN;
    let left = audit_log::table
        .filter(audit_log::subject_id.eq_any(tasks))
        .filter(audit_log::actor_id.is_null())
        .filter(audit_log::client_address.is_not_null())
        .filter(audit_log::at.ge(since - CLOCK_MARGIN))
        .filter(audit_log::at.le(until));
    let left = diesel::select(exists(left));
    if !left.clone().get_result(connection)? {
        let (rows, more) = (0, false);
        return Ok(Changes { rows, more });
    }
    let forgotten = diesel::select(forget_audit_addresses(tasks, BATCH));
    Ok(Changes {
        rows: forgotten.get_result(connection)?,
        more: left.get_result(connection)?,
    })
}

/// What one call of [`pseudonymise`] or [`forget_addresses`] did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Changes {
    /// The number of rows that were changed.
    pub rows: i64,
    /// Whether there are rows left. Without any that were changed, another transaction holds them.
    pub more: bool,
}

/// Replaces the identifier of a deleted user by a pseudonym, and removes the user's client addresses, in at most
/// 5,000 rows. It does not wait for rows that other transactions hold.
///
/// # Errors
/// The database fails.
pub fn pseudonymise(connection: &mut PgConnection, user: UserId) -> QueryResult<Changes> {
    let pseudonymised = diesel::select(pseudonymise_audit_log(user, BATCH));
    Ok(Changes {
        rows: pseudonymised.get_result(connection)?,
        more: has_entries(connection, user.as_bytes())?,
    })
}

/// Reads `AUDIT_RETENTION`.
///
/// # Errors
/// The value is not a duration from 30 days to 100 years.
pub fn read_retention(reader: &mut Reader) -> Result<Duration, app_config::Error> {
    reader.between(
        "AUDIT_RETENTION",
        "400d",
        "30d",
        "36500d",
        "How long rows of the audit log are kept at least. They are deleted by the calendar month (UTC), so up to a \
         month later.",
    )
}

/// Keeps the partitions of the table until it is cancelled: those of the next months exist, and those whose rows are
/// all older than `keep` are dropped. Several replicas may run it at the same time.
pub async fn retain(database: Database, keep: Duration, shutdown: CancellationToken) {
    while !shutdown.is_cancelled() {
        let drop = move |connection: &mut Connection| drop_partition(connection, keep);
        let prune = move |connection: &mut Connection| prune(connection, keep);
        let done = [
            database.run(create_partitions).await,
            repeat(&database, &shutdown, drop).await,
            repeat(&database, &shutdown, prune).await,
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
fn create_partitions(connection: &mut Connection) -> Result<(), Error> {
    sql_query("SELECT create_audit_log_partitions()").execute(connection)?;
    Ok(())
}

/// Repeats a step, with pauses, while it says that there is more to do.
async fn repeat(
    database: &Database,
    shutdown: &CancellationToken,
    step: impl FnOnce(&mut Connection) -> Result<bool, Error> + Copy + Send + 'static,
) -> Result<(), Error> {
    while !shutdown.is_cancelled() && database.run(step).await? {
        shutdown.run_until_cancelled(sleep(BATCH_PAUSE)).await;
    }
    Ok(())
}

/// Drops a partition of which all rows are older than `keep`. `false` if there is none.
fn drop_partition(connection: &mut Connection, keep: Duration) -> Result<bool, Error> {
    let drop = diesel::select(drop_audit_log_partition(interval(keep)));
    let dropped: Option<String> = drop.get_result(connection)?;
    if let Some(partition) = &dropped {
        metrics::counter!("retention_deleted_total", "table" => "audit_log").increment(1);
        tracing::info!(partition, "dropped a partition of the audit log");
    }
    Ok(dropped.is_some())
}

/// Deletes a batch of rows that do not go with their partition. `false` if there are no more.
fn prune(connection: &mut Connection, keep: Duration) -> Result<bool, Error> {
    let prune = diesel::select(prune_audit_log(interval(keep), BATCH));
    let pruned: i64 = prune.get_result(connection)?;
    metrics::counter!("retention_deleted_total", "table" => "audit_log")
        .increment(u64::try_from(pruned).unwrap_or(0));
    if pruned > 0 {
        tracing::info!(rows = pruned, "pruned old rows of the audit log");
    }
    Ok(pruned >= i64::from(BATCH))
}
