//! The list of all deliveries, and the end of some. With every filter, the list reads an index in its order.

use database::{Error, LimitedRows, RowLimit, load_limited, prepared};
use diesel::dsl::sql;
use diesel::prelude::*;
use diesel::sql_types::{Array, BigInt, Binary, Bool, Text};
use values::DeliveryId;

use crate::deliveries::requests::{ChosenDeliveries, DeliveryQuery};
use crate::deliveries::store::{Delivery, all_deliveries, select_delivery};
use crate::schema::{deliveries, task_states, webhooks};

/// Statuses are literals: a plan that is kept uses a partial index, or leaves out a table, only for a literal.
const ALL: &str = "all_deliveries.id = ANY(ARRAY(SELECT id FROM all_deliveries ORDER BY id DESC";
const PENDING: &str = "all_deliveries.status = 'pending' AND all_deliveries.id = ANY(ARRAY(
    SELECT id FROM deliveries ORDER BY id DESC";
const PENDING_OF_HOST: &str = "all_deliveries.status = 'pending' AND all_deliveries.id = ANY(ARRAY(
    SELECT id FROM deliveries WHERE host = ";
const FAILED: &str = "all_deliveries.status = 'fail' AND all_deliveries.id = ANY(ARRAY(
    SELECT id FROM finished_deliveries WHERE status = 'fail' ORDER BY id DESC";
const FAILED_OF_HOST: &str = "all_deliveries.status = 'fail' AND all_deliveries.id = ANY(ARRAY(
    SELECT id FROM finished_deliveries WHERE status = 'fail' AND host = ";
/// Few or none may have been sent lately.
const SENT: &str = "all_deliveries.status = 'sent' AND all_deliveries.id = ANY(ARRAY(
    SELECT id FROM (SELECT id, status FROM finished_deliveries ORDER BY id DESC LIMIT 100000) AS newest
    WHERE status = 'sent' ORDER BY id DESC";

/// How the deliveries of a page are found: the start of the condition, the host that follows it, and the order of the index.
fn condition(chosen: &ChosenDeliveries) -> (&'static str, Option<&str>, &'static str) {
    const LIMIT: &str = " LIMIT ";
    match chosen {
        ChosenDeliveries::All => (ALL, None, LIMIT),
        ChosenDeliveries::Sent => (SENT, None, LIMIT),
        ChosenDeliveries::Pending(None) => (PENDING, None, LIMIT),
        ChosenDeliveries::Failed(None) => (FAILED, None, LIMIT),
        ChosenDeliveries::Pending(Some(host)) => {
            let order = " ORDER BY next_attempt DESC, id DESC LIMIT ";
            (PENDING_OF_HOST, Some(host.as_str()), order)
        }
        ChosenDeliveries::Failed(Some(host)) => {
            let order = " ORDER BY id DESC LIMIT ";
            (FAILED_OF_HOST, Some(host.as_str()), order)
        }
    }
}

/// Loads a page of all deliveries, newest first. Those of a host that are pending come in the order of their next
/// attempt, the latest first, because their index has it.
pub(crate) fn load_page(
    connection: &mut PgConnection,
    DeliveryQuery { chosen, paging }: &DeliveryQuery,
    limit: RowLimit,
) -> Result<LimitedRows<Delivery>, Error> {
    let (start, host, order) = condition(chosen);
    let (rows, offset) = (paging.rows_to_fetch(), paging.offset);
    macro_rules! page {
        ($selected:expr) => {
            $selected
                .sql(order)
                .bind::<BigInt, _>(rows)
                .sql(" OFFSET ")
                .bind::<BigInt, _>(offset)
                .sql("))")
        };
    }
    let query = select_delivery!().into_boxed();
    let query = match host {
        None => query.filter(page!(sql::<Bool>(start))),
        Some(host) => query.filter(page!(sql::<Bool>(start).bind::<Text, _>(host.to_owned()))),
    };
    let query = match chosen {
        ChosenDeliveries::Pending(Some(_)) => query.order((
            all_deliveries::next_attempt.desc(),
            all_deliveries::id.desc(),
        )),
        _ => query.order(all_deliveries::id.desc()),
    };
    let size = "octet_length(url) + 512 + octet_length(attempt_log::text)";
    Ok(load_limited(connection, query.limit(rows), size, limit)?)
}

/// Locks a waiting delivery until the end of the transaction, which has locked its task. Returns whether there is one.
pub(crate) fn lock(connection: &mut PgConnection, id: DeliveryId) -> Result<bool, Error> {
    let locked: Option<DeliveryId> = deliveries::table
        .find(id)
        .select(deliveries::id)
        .for_update()
        .first(connection)
        .optional()?;
    Ok(locked.is_some())
}

#[derive(QueryableByName)]
struct Id {
    #[diesel(sql_type = Binary)]
    id: DeliveryId,
}

/// Ends waiting deliveries, which the transaction has locked, as failed. If a worker has claimed one, its result will not
/// count. Returns those that it ended.
pub(crate) fn cancel(
    connection: &mut PgConnection,
    ids: &[DeliveryId],
) -> Result<Vec<DeliveryId>, Error> {
    let cancelled: Vec<Id> = prepared(CANCEL)
        .bind::<Array<Binary>, _>(ids)
        .load(connection)?;
    Ok(cancelled.into_iter().map(|row| row.id).collect())
}

// The API shows the newest 100 attempts. The status of a webhook is about its newest event.
const CANCEL: &str = "
WITH cancelled AS (
    DELETE FROM deliveries WHERE id = ANY($1)
    RETURNING id, webhook_id, task_id, request_id, traceparent, created, lease, attempt_log, due_at
), archived AS (
    INSERT INTO finished_deliveries
        (id, webhook_id, task_id, status, request_id, traceparent, created, lease, due_at, attempt_log)
    SELECT id, webhook_id, task_id, 'fail', request_id, traceparent, created, lease, due_at,
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
