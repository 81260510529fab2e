//! The list of all deliveries, and changes of some, for administrators. With every filter, the list reads an index in its
//! order. Changes of many wait for no lock: what another transaction has locked is left to the next call.

use audit_log::insert_entries;
use database::{Error, prepared};
use diesel::dsl::sql;
use diesel::prelude::*;
use diesel::sql_types::{Array, BigInt, Binary, Bool, Jsonb, Text};
use listing::{Binds, Page, PageLimits};
use serde_json::Value;
use values::{DeliveryId, TaskId, WebhookId};

use crate::deliveries::requests::DeliveryQuery;
use crate::deliveries::store::{Delivery, select};
use crate::schema::{deliveries, finished_deliveries, webhooks};
use crate::status::DeliveryStatus;

/// Loads a page of all deliveries, newest first. Those of a host that are pending come in the order of their next
/// attempt, the latest first, because their index has it.
pub(crate) fn load_page(
    connection: &mut PgConnection,
    chosen: &DeliveryQuery,
    limits: PageLimits,
) -> Result<Page<Delivery>, Error> {
    let mut binds = Binds::default();
    let (status, rows) = status_and_rows(chosen, &mut binds);
    let order = match (chosen.status, &chosen.host) {
        (Some(DeliveryStatus::Pending), Some(_)) => "next_attempt DESC, id DESC",
        _ => "id DESC",
    };
    let page = binds.page(limits.paging);
    let condition = format!(
        "{status} AND all_deliveries.id = ANY(ARRAY(SELECT id FROM {rows} ORDER BY {order} {page}))"
    );
    select(&condition, order, binds).load(connection, limits)
}

/// The condition on the status of the deliveries, and where an index has their identifiers. Statuses are literals: a plan
/// that is kept uses a partial index, or leaves out a table, only for a literal.
fn status_and_rows(chosen: &DeliveryQuery, binds: &mut Binds) -> (&'static str, String) {
    let host = chosen.host.as_ref();
    let of_host = host.map_or("true".to_owned(), |host| {
        format!("host = {}", binds.text(host.as_str()))
    });
    match chosen.status {
        None => ("true", "all_deliveries".to_owned()),
        Some(DeliveryStatus::Pending) => (
            "all_deliveries.status = 'pending'",
            format!("deliveries WHERE {of_host}"),
        ),
        Some(DeliveryStatus::Fail) => (
            "all_deliveries.status = 'fail'",
            format!("finished_deliveries WHERE status = 'fail' AND {of_host}"),
        ),
        // Few or none may have been sent lately.
        Some(DeliveryStatus::Sent) => (
            "all_deliveries.status = 'sent'",
            "(SELECT id, status FROM finished_deliveries ORDER BY id DESC LIMIT 100000) AS newest \
             WHERE status = 'sent'"
                .to_owned(),
        ),
    }
}

/// Ends waiting deliveries as failed, in a transaction that has locked them or their task. If one is being sent at this
/// moment, the result will not count. Returns those that it ended.
pub(crate) fn cancel(
    connection: &mut PgConnection,
    ids: &[DeliveryId],
) -> Result<Vec<DeliveryId>, Error> {
    let cancel = prepared(CANCEL).bind::<Array<Binary>, _>(ids);
    Ok(cancel.returning::<Binary>().load(connection)?)
}

// The API shows the newest 100 attempts. The status of a webhook is about its newest event.
const CANCEL: &str = "
WITH cancelled AS (
    DELETE FROM deliveries WHERE id = ANY($1)
    RETURNING id, webhook_id, task_id, request_id, traceparent, created, lease, attempt_log, due_at, host
), archived AS (
    INSERT INTO finished_deliveries
        (id, webhook_id, task_id, status, request_id, traceparent, created, lease, due_at, host, attempt_log)
    SELECT id, webhook_id, task_id, 'fail', request_id, traceparent, created, lease, due_at, host,
        CASE WHEN jsonb_array_length(attempt_log) < 100 THEN attempt_log ELSE attempt_log - 0 END
            || jsonb_build_array(jsonb_build_object(
                'at', to_char(now() AT TIME ZONE 'UTC', 'YYYY-MM-DD\"T\"HH24:MI:SS.MS\"Z\"'), 'durationMs', 0,
                'statusCode', NULL, 'response', NULL, 'error', 'cancelled by an administrator'))
    FROM cancelled
), followed AS (
    UPDATE webhooks SET status = 'fail' FROM cancelled
    WHERE webhooks.id = ANY(ARRAY[cancelled.webhook_id]) AND (due_at IS NULL OR due_at = last_due)
)
SELECT id FROM cancelled";

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
        // A literal, for which Postgres uses the partial index.
        .filter(sql::<Bool>("status = 'fail'"))
        .filter(finished_deliveries::host.eq(host))
        .order(finished_deliveries::id)
        .limit(limit)
        .for_update()
        .skip_locked()
        .select((finished_deliveries::id, finished_deliveries::task_id))
        .load(connection);
    Ok(locked?)
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
