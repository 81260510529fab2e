//! The list of all deliveries, and the end of some. With every filter, the list reads an index in its order.

use database::{Error, prepared};
use diesel::prelude::*;
use diesel::sql_types::{Array, Binary};
use listing::{Binds, Page, PageLimits};
use values::DeliveryId;

use crate::deliveries::requests::ChosenDeliveries;
use crate::deliveries::store::{Delivery, select};
use crate::schema::deliveries;

/// Loads a page of all deliveries, newest first. Those of a host that are pending come in the order of their next
/// attempt, the latest first, because their index has it.
pub(crate) fn load_page(
    connection: &mut PgConnection,
    chosen: &ChosenDeliveries,
    limits: PageLimits,
) -> Result<Page<Delivery>, Error> {
    let mut binds = Binds::default();
    let (status, rows) = status_and_rows(chosen, &mut binds);
    let order = match chosen {
        ChosenDeliveries::Pending(Some(_)) => "next_attempt DESC, id DESC",
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
fn status_and_rows(chosen: &ChosenDeliveries, binds: &mut Binds) -> (&'static str, String) {
    let host = match chosen {
        ChosenDeliveries::Pending(host) | ChosenDeliveries::Failed(host) => host.as_ref(),
        ChosenDeliveries::All | ChosenDeliveries::Sent => None,
    };
    let of_host = host.map_or("true".to_owned(), |host| {
        format!("host = {}", binds.text(host.as_str()))
    });
    match chosen {
        ChosenDeliveries::All => ("true", "all_deliveries".to_owned()),
        ChosenDeliveries::Pending(_) => (
            "all_deliveries.status = 'pending'",
            format!("deliveries WHERE {of_host}"),
        ),
        ChosenDeliveries::Failed(_) => (
            "all_deliveries.status = 'fail'",
            format!("finished_deliveries WHERE status = 'fail' AND {of_host}"),
        ),
        // Few or none may have been sent lately.
        ChosenDeliveries::Sent => (
            "all_deliveries.status = 'sent'",
            "(SELECT id, status FROM finished_deliveries ORDER BY id DESC LIMIT 100000) AS newest \
             WHERE status = 'sent'"
                .to_owned(),
        ),
    }
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

/// Ends waiting deliveries, which the transaction has locked, as failed. If one is being sent at this moment, the result
/// will not count. Returns those that it ended.
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
