//! What is old goes, in small batches, so that no table grows for ever and no sweep holds locks for long.

use std::time::Duration;

use database::{Database, Error};
use diesel::PgConnection;
use diesel::RunQueryDsl as _;
use diesel::sql_types::BigInt;
use tokio_util::sync::CancellationToken;

/// Rows that one statement takes.
const BATCH: i64 = 1_000;
const PAUSE_BETWEEN_BATCHES: Duration = Duration::from_millis(100);
const SHORTEST_PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_secs(60);

/// One sort of rows, and how long they stay.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Rule {
    /// The table, for the log.
    table: &'static str,
    // The DSL has no LIMIT for DELETE, nor SKIP LOCKED in a subquery.
    statement: &'static str,
    /// How long a row stays after it has ended.
    keep: Duration,
}

impl Rule {
    /// Deletion jobs that have ended, with their steps: a ticket is answered as long as its job stands.
    pub(crate) fn deletions(keep: Duration) -> Self {
        Self {
            table: "deletions",
            statement: "DELETE FROM deletions WHERE id IN (\
                SELECT id FROM deletions WHERE finished < now() - $1 * interval '1 millisecond' \
                ORDER BY finished LIMIT $2 FOR UPDATE SKIP LOCKED)",
            keep,
        }
    }

    /// Codes that no longer open anything.
    pub(crate) fn codes() -> Self {
        Self {
            table: "codes",
            statement: "DELETE FROM codes WHERE fingerprint IN (\
                SELECT fingerprint FROM codes WHERE expires < now() - $1 * interval '1 millisecond' \
                ORDER BY expires LIMIT $2 FOR UPDATE SKIP LOCKED)",
            keep: Duration::ZERO,
        }
    }

    /// Requests for codes that no longer count.
    pub(crate) fn code_requests() -> Self {
        Self {
            table: "code_requests",
            statement: "DELETE FROM code_requests WHERE (counted, subject) IN (\
                SELECT counted, subject FROM code_requests \
                WHERE forgotten_at < now() - $1 * interval '1 millisecond' \
                ORDER BY forgotten_at LIMIT $2 FOR UPDATE SKIP LOCKED)",
            keep: Duration::ZERO,
        }
    }

    /// Messages that were sent or given up.
    pub(crate) fn notifications(keep: Duration) -> Self {
        Self {
            table: "notifications",
            statement: "DELETE FROM notifications WHERE id IN (\
                SELECT id FROM notifications WHERE finished < now() - $1 * interval '1 millisecond' \
                ORDER BY finished LIMIT $2 FOR UPDATE SKIP LOCKED)",
            keep,
        }
    }

    /// Failed sign-ins that no back-off counts any more.
    pub(crate) fn sign_in_failures(keep: Duration) -> Self {
        Self {
            table: "sign_in_failures",
            statement: "DELETE FROM sign_in_failures WHERE (account, client_address) IN (\
                SELECT account, client_address FROM sign_in_failures \
                WHERE last_failure < now() - $1 * interval '1 millisecond' \
                ORDER BY last_failure LIMIT $2 FOR UPDATE SKIP LOCKED)",
            keep,
        }
    }

    /// Deletes at most one batch; the number of rows that went.
    fn apply(self, connection: &mut PgConnection) -> Result<usize, Error> {
        let keep = i64::try_from(self.keep.as_millis()).unwrap_or(i64::MAX);
        let deleted = diesel::sql_query(self.statement)
            .bind::<BigInt, _>(keep)
            .bind::<BigInt, _>(BATCH)
            .execute(connection)?;
        Ok(deleted)
    }
}

/// Applies the rules again and again until it is cancelled.
pub(crate) async fn retain(database: Database, rules: Vec<Rule>, shutdown: CancellationToken) {
    let keeps = rules.iter().map(|rule| rule.keep / 4);
    let shortest = keeps.filter(|keep| !keep.is_zero()).min();
    let pause = shortest
        .unwrap_or(LONGEST_PAUSE)
        .clamp(SHORTEST_PAUSE, LONGEST_PAUSE);
    while !shutdown.is_cancelled() {
        for rule in &rules {
            sweep(&database, *rule, &shutdown).await;
        }
        tokio::select! {
            () = tokio::time::sleep(pause) => {}
            () = shutdown.cancelled() => {}
        }
    }
}

async fn sweep(database: &Database, rule: Rule, shutdown: &CancellationToken) {
    let mut total = 0;
    while !shutdown.is_cancelled() {
        match database.run(move |connection| rule.apply(connection)).await {
            Ok(deleted) => {
                total += deleted;
                if i64::try_from(deleted).is_ok_and(|deleted| deleted < BATCH) {
                    break;
                }
            }
            Err(error) => {
                tracing::warn!(table = rule.table, error = ?error, "old rows could not be deleted");
                break;
            }
        }
        tokio::select! {
            () = tokio::time::sleep(PAUSE_BETWEEN_BATCHES) => {}
            () = shutdown.cancelled() => {}
        }
    }
    if total > 0 {
        metrics::counter!("retention_deleted_total", "table" => rule.table)
            .increment(u64::try_from(total).unwrap_or(u64::MAX));
        tracing::info!(table = rule.table, rows = total, "old rows deleted");
    }
}
