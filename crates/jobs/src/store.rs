//! The statements on job tables. They are raw SQL because the DSL has no tables that are parameters; the
//! names of tables and columns are constants of the program.

use std::fmt::Display;
use std::time::Duration;

use database::{Connection, Database, Error, composed, interval};
use diesel::pg::Pg;
use diesel::serialize::ToSql;
use diesel::sql_types::{BigInt, Binary, Bool, Double, Interval, Text};
use diesel::{OptionalExtension as _, QueryableByName, RunQueryDsl as _, sql_query};
use messaging::Message;
use serde::Serialize;
use telemetry::RequestContext;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;
use utoipa::ToSchema;
use values::FromText;

/// Rows that one statement deletes: small enough that no statement holds locks for long.
const BATCH: usize = 1_000;
const BATCH_PAUSE: Duration = Duration::from_millis(100);
const MIN_PAUSE: Duration = Duration::from_secs(1);
const MAX_PAUSE: Duration = Duration::from_secs(60);

/// The identifier of a job: one of the types in `values`.
pub trait JobId: FromText + Display + ToSql<Binary, Pg> + Copy + Send + 'static {}

impl<Id: FromText + Display + ToSql<Binary, Pg> + Copy + Send + 'static> JobId for Id {}

/// A table whose rows are jobs. It has these columns:
///
/// | column | |
/// |---|---|
/// | `id bytea` | the primary key |
/// | `request_id text`, `traceparent text` | the request that caused the job |
/// | `next_attempt timestamptz` | the job is not claimed before this time |
/// | `republish_at timestamptz` | no sweep publishes the job before this time |
/// | `lease bigint` | the number of claims so far |
/// | `lease_until timestamptz` | when the latest claim ends; null when there is none |
/// | `finished timestamptz` | when the job ended; null until then |
///
/// All are `NOT NULL` except the last two; `next_attempt` defaults to `now()` and `lease` to 0. The table has
/// indexes on `republish_at` (`WHERE finished IS NULL`) and `finished` (`WHERE finished IS NOT NULL`).
#[derive(Debug, Clone, Copy)]
pub struct JobTable(pub &'static str);

/// A request to claim a job.
#[derive(Debug, Clone, Copy)]
pub struct Claim<Id> {
    /// The job.
    pub id: Id,
    /// How long the claim lasts unless it is renewed.
    pub duration: Duration,
    /// Claim the job even if another lease is still valid.
    pub ignore_lease: bool,
}

/// A claim on a job. It is lost when the job is claimed again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Lease<Id> {
    /// The job.
    pub id: Id,
    /// The value of the column `lease` while the claim is valid.
    pub number: i64,
}

/// The jobs of one kind that have not ended.
#[derive(Debug, QueryableByName, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = JobBacklog)]
pub struct Backlog {
    /// `deletions` or `notifications`.
    #[diesel(sql_type = Text)]
    #[schema(example = "deletions")]
    name: String,
    /// How many jobs have not ended.
    #[diesel(sql_type = BigInt)]
    #[schema(example = 2)]
    pub(crate) open: i64,
    /// How long the oldest due job has waited for a worker, in seconds.
    #[diesel(sql_type = Double)]
    #[schema(example = 0.4)]
    pub(crate) overdue_seconds: f64,
}

impl JobTable {
    /// Claims a job that is due and has no valid lease; `None` when it is not claimable.
    ///
    /// # Errors
    /// The statement fails.
    pub fn claim<Id: JobId>(
        self,
        connection: &mut Connection,
        claim: Claim<Id>,
    ) -> Result<Option<Lease<Id>>, Error> {
        let update = format!(
            "UPDATE {table} SET lease = lease + 1, lease_until = now() + $2, republish_at = now() + $2
             WHERE id = $1 AND finished IS NULL AND next_attempt <= now()
                AND (lease_until IS NULL OR lease_until <= now() OR $3)
             RETURNING lease",
            table = self.0
        );
        let claimed = composed(update, (), false)
            .bind::<Binary, _>(claim.id)
            .bind::<Interval, _>(interval(claim.duration))
            .bind::<Bool, _>(claim.ignore_lease)
            .returning::<BigInt>()
            .get_result(connection)
            .optional()?;
        let id = claim.id;
        Ok(claimed.map(|number| Lease { id, number }))
    }

    /// Extends a claim; `false` when it is lost.
    ///
    /// # Errors
    /// The statement fails.
    pub fn renew<Id: JobId>(
        self,
        connection: &mut Connection,
        lease: Lease<Id>,
        duration: Duration,
    ) -> Result<bool, Error> {
        self.update(connection, lease, "lease_until = now() + $3", duration)
    }

    /// Ends a claim: any worker may claim the job after `pause`. `false` when the claim was lost before;
    /// then nothing is written.
    ///
    /// # Errors
    /// The statement fails.
    pub fn release<Id: JobId>(
        self,
        connection: &mut Connection,
        lease: Lease<Id>,
        pause: Duration,
    ) -> Result<bool, Error> {
        let set = "lease_until = NULL, next_attempt = now() + $3";
        self.update(connection, lease, set, pause)
    }

    /// Writes to a job whose claim is valid, which no sweep publishes for `pause`.
    fn update<Id: JobId>(
        self,
        connection: &mut Connection,
        lease: Lease<Id>,
        set: &str,
        pause: Duration,
    ) -> Result<bool, Error> {
        let updated = sql_query(format!(
            "UPDATE {table} SET {set}, republish_at = now() + $3
             WHERE id = $1 AND lease = $2 AND finished IS NULL",
            table = self.0
        ))
        .bind::<Binary, _>(lease.id)
        .bind::<BigInt, _>(lease.number)
        .bind::<Interval, _>(interval(pause))
        .execute(connection)?;
        Ok(updated > 0)
    }

    /// The messages of at most `batch` jobs that are due and have no message in flight. Sweeps ignore
    /// these jobs for `pause` from now on.
    pub(crate) fn take_due(
        self,
        connection: &mut Connection,
        batch: i64,
        pause: Duration,
    ) -> Result<Vec<Message>, Error> {
        // Identifiers in messages are hexadecimal.
        let due = format!(
            "UPDATE {table} SET republish_at = now() + $2 WHERE id = ANY(ARRAY(
                SELECT id FROM {table} WHERE finished IS NULL AND republish_at <= now()
                ORDER BY republish_at LIMIT $1 FOR UPDATE SKIP LOCKED))
             RETURNING encode(id, 'hex') AS id, request_id, traceparent",
            table = self.0
        );
        let due: Vec<(String, String, String)> = composed(due, (), true)
            .bind::<BigInt, _>(batch)
            .bind::<Interval, _>(interval(pause))
            .returning::<(Text, Text, Text)>()
            .load(connection)?;
        let messages = due.into_iter().map(|(id, request_id, traceparent)| {
            let context = RequestContext::continued(Some(&request_id), Some(&traceparent));
            Message::new(id, context)
        });
        Ok(messages.collect())
    }

    /// Reads how many jobs have not ended, and how long they have waited.
    ///
    /// # Errors
    /// The database fails.
    pub fn backlog(self, connection: &mut Connection) -> Result<Backlog, Error> {
        let backlog = sql_query(format!(
            "SELECT '{table}' AS name, count(*) AS open,
                greatest(coalesce(extract(epoch FROM now() - min(next_attempt)), 0), 0)::double precision
                    AS overdue_seconds
             FROM {table} WHERE finished IS NULL",
            table = self.0
        ));
        Ok(backlog.get_result(connection)?)
    }
}

/// Which rows of a table are deleted, and when.
#[derive(Debug, Clone, Copy)]
pub struct RetentionRule {
    /// The table.
    pub table: &'static str,
    /// The column with the time from which a row's age counts; it has an index.
    pub column: &'static str,
    /// How long a row is kept after that time.
    pub keep: Duration,
    /// Which of the rows, as an SQL condition.
    pub only: &'static str,
}

impl RetentionRule {
    /// A rule for all rows of a table.
    #[must_use]
    pub const fn of_all(table: &'static str, column: &'static str, keep: Duration) -> Self {
        Self {
            table,
            column,
            keep,
            only: "true",
        }
    }
}

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
        let deleted = database.run(move |connection| delete_old(connection, rule));
        let failed = |error: &Error| error.warn("old rows could not be deleted");
        let deleted = deleted.await.inspect_err(failed).unwrap_or_default();
        total += deleted;
        if deleted < BATCH {
            break;
        }
        shutdown.run_until_cancelled(sleep(BATCH_PAUSE)).await;
    }
    metrics::counter!("retention_deleted_total", "table" => table)
        .increment(u64::try_from(total).unwrap_or(u64::MAX));
    if total > 0 {
        tracing::info!(table, rows = total, "old rows deleted");
    }
}

/// Deletes at most [`BATCH`] rows by a rule, and returns how many were deleted.
fn delete_old(connection: &mut Connection, rule: RetentionRule) -> Result<usize, Error> {
    let deleted = sql_query(format!(
        "DELETE FROM {table} WHERE ctid = ANY(ARRAY(
            SELECT ctid FROM {table} WHERE {column} < now() - $1 AND ({only})
            ORDER BY {column} LIMIT {BATCH} FOR UPDATE SKIP LOCKED))",
        table = rule.table,
        column = rule.column,
        only = rule.only,
    ))
    .bind::<Interval, _>(interval(rule.keep))
    .execute(connection)?;
    Ok(deleted)
}
