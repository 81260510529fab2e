//! Changes of many deliveries of a host. They wait for no lock: what another transaction has locked is left to the next
//! call.

use audit_log::insert_entries;
use database::{Error, prepared};
use diesel::dsl::sql;
use diesel::prelude::*;
use diesel::sql_types::{Array, BigInt, Bool, Jsonb, Text};
use serde_json::Value;
use values::{DeliveryId, TaskId, WebhookId};

use crate::schema::{deliveries, finished_deliveries, webhooks};

/// Deliveries and their tasks.
pub(crate) type OfTasks = Vec<(DeliveryId, TaskId)>;

/// Locks pending deliveries of a host with their webhooks, those whose next attempt comes first.
pub(crate) fn lock_pending(
    connection: &mut PgConnection,
    host: &str,
    limit: i64,
) -> Result<OfTasks, Error> {
    let locked: Vec<(DeliveryId, TaskId, WebhookId)> = deliveries::table
        .filter(deliveries::host.eq(host))
        .order(deliveries::next_attempt)
        .limit(limit)
        .for_update()
        .skip_locked()
        .select((deliveries::id, deliveries::task_id, deliveries::webhook_id))
        .load(connection)?;
    let ids: Vec<_> = locked.iter().map(|(.., webhook)| *webhook).collect();
    let free: Vec<WebhookId> = webhooks::table
        .filter(webhooks::id.eq_any(ids))
        .for_no_key_update()
        .skip_locked()
        .select(webhooks::id)
        .load(connection)?;
    let locked = locked
        .into_iter()
        .filter(|(.., webhook)| free.contains(webhook));
    Ok(locked.map(|(id, task, _)| (id, task)).collect())
}

/// Locks failed deliveries of a host, the oldest first.
pub(crate) fn lock_failed(
    connection: &mut PgConnection,
    host: &str,
    limit: i64,
) -> Result<OfTasks, Error> {
    let locked = finished_deliveries::table
        .filter(is_failed())
        .filter(finished_deliveries::host.eq(host))
        .order(finished_deliveries::id)
        .limit(limit)
        .for_update()
        .skip_locked()
        .select((finished_deliveries::id, finished_deliveries::task_id))
        .load(connection);
    Ok(locked?)
}

/// A literal, for which Postgres uses the partial index.
fn is_failed() -> diesel::expression::SqlLiteral<Bool> {
    sql::<Bool>("status = 'fail'")
}

/// Inserts audit entries, in the form of [`Entry::to_json`](audit_log::Entry::to_json).
pub(crate) fn record(connection: &mut PgConnection, entries: &[Value]) -> Result<(), Error> {
    prepared(insert_entries!("SELECT unnest($1) AS entry"))
        .bind::<Array<Jsonb>, _>(entries)
        .execute(connection)?;
    Ok(())
}

/// What [`count`] counts: pending deliveries of a host.
pub(crate) const PENDING: &str =
    "SELECT count(*) FROM (SELECT FROM deliveries WHERE host = $1 LIMIT $2) AS counted";
/// Failed deliveries of a host.
pub(crate) const FAILED: &str = "SELECT count(*) FROM (
    SELECT FROM finished_deliveries WHERE status = 'fail' AND host = $1 LIMIT $2) AS counted";

/// Counts deliveries of a host, up to a limit.
pub(crate) fn count(
    connection: &mut PgConnection,
    deliveries: &'static str,
    host: &str,
    limit: i64,
) -> Result<i64, Error> {
    let count = prepared(deliveries)
        .bind::<Text, _>(host)
        .bind::<BigInt, _>(limit);
    Ok(count.returning::<BigInt>().get_result(connection)?)
}
