//! Deliveries, waiting or finished, and changes of some. With every filter, the list of all reads an index in its order.
//! Changes of many wait for no lock: what another transaction has locked is left to the next call.

use audit_log::insert_entries;
use database::{Error, composed, prepared};
use diesel::prelude::*;
use diesel::sql_types::{Array, BigInt, Binary, Bool, Jsonb, Nullable, Text, Timestamptz};
use listing::{Bind, Binds, Page, PageLimits, Statement};
use serde::Serialize;
use serde_json::Value;
use utoipa::ToSchema;
use values::{DeliveryId, TaskId, Timestamp, WebhookId};

use crate::deliveries::requests::DeliveryQuery;
use crate::deliveries::responses::Attempt;
use crate::free_rows::lock_free_rows;
use crate::schema::{deliveries, webhooks};
use crate::status::{DeliveryStatus, WebhookEvent, shown_status};

/// A decision, or a due date that has passed, on its way to one webhook.
#[derive(Debug, QueryableByName, Serialize, ToSchema)]
#[diesel(check_for_backend(diesel::pg::Pg))]
#[serde(rename_all = "camelCase")]
#[schema(as = DeliveryResponse)]
pub(crate) struct Delivery {
    /// The delivery's identifier: the `webhook-id` header of every attempt.
    #[diesel(sql_type = Binary)]
    #[schema(value_type = String, example = "665f1c2ab3d4e5f60718293c")]
    id: DeliveryId,
    /// The webhook's identifier.
    #[diesel(sql_type = Binary)]
    #[schema(value_type = String, example = "665f1c2ab3d4e5f60718293b")]
    webhook_id: WebhookId,
    /// The URL that is called.
    #[diesel(sql_type = Text)]
    #[schema(example = "https://engine.example.com/flows/1?correlationId=42")]
    url: String,
    /// The decision; `due` if the due date has passed.
    #[diesel(sql_type = Text)]
    task_status: WebhookEvent,
    /// `pending` until the last attempt ends, then `sent` or `fail`.
    #[diesel(sql_type = Text)]
    status: DeliveryStatus,
    /// When the task was decided or the due date passed, or the webhook was registered if that was later.
    #[diesel(sql_type = Timestamptz)]
    #[schema(value_type = String, format = DateTime)]
    created: Timestamp,
    /// When the next attempt is due; null if there is none.
    #[diesel(sql_type = Nullable<Timestamptz>)]
    #[schema(value_type = Option<String>, format = DateTime, required = true)]
    next_attempt: Option<Timestamp>,
    /// It waits, because the user who registered the webhook has no right to the task now. Absent otherwise.
    #[diesel(sql_type = Bool)]
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    #[schema(required = false)]
    suspended: bool,
    /// The newest 100 attempts, oldest first.
    #[diesel(sql_type = Jsonb)]
    #[serde(rename = "attempts")]
    #[schema(value_type = Vec<Attempt>)]
    attempt_log: Value,
}

fn select(condition: &str, order: &str, binds: Binds) -> Statement {
    Statement {
        query: format!(
            "SELECT all_deliveries.id, webhook_id, url, all_deliveries.status, all_deliveries.created, next_attempt, \
                 attempt_log, suspended, \
                 CASE WHEN due_at IS NULL THEN {status} ELSE 'due' END AS task_status \
             FROM all_deliveries JOIN webhooks ON webhooks.id = webhook_id \
             JOIN task_states ON task_states.task_id = all_deliveries.task_id \
             WHERE {condition} ORDER BY {order}",
            status = shown_status!()
        ),
        binds,
        size: "octet_length(url) + 512 + octet_length(attempt_log::text)",
        is_cached: true,
    }
}

pub(crate) fn load_of_task(
    connection: &mut PgConnection,
    task: TaskId,
    limits: PageLimits,
) -> Result<Page<Delivery>, Error> {
    let mut binds = Binds::default();
    let task = binds.add(Bind::Bytes(task.as_bytes().to_vec()));
    let order = format!("id {}", binds.page(limits.paging));
    let condition = format!("all_deliveries.task_id = {task}");
    select(&condition, &order, binds).load(connection, limits)
}

pub(crate) fn find(
    connection: &mut PgConnection,
    id: DeliveryId,
) -> Result<Option<Delivery>, Error> {
    let mut binds = Binds::default();
    let id = binds.add(Bind::Bytes(id.as_bytes().to_vec()));
    let condition = format!("all_deliveries.id = {id}");
    let select = select(&condition, "id", binds);
    let found = composed(select.query, select.binds, select.is_cached).get_result(connection);
    Ok(found.optional()?)
}

pub(crate) fn find_task(
    connection: &mut PgConnection,
    id: DeliveryId,
) -> Result<Option<TaskId>, Error> {
    let find = prepared("SELECT task_id FROM all_deliveries WHERE id = $1").bind::<Binary, _>(id);
    Ok(find
        .returning::<Binary>()
        .get_result(connection)
        .optional()?)
}

#[derive(Debug, Clone, PartialEq, Eq, Queryable)]
pub(crate) struct DueDelivery {
    pub(crate) id: DeliveryId,
    /// As [`lane_of`](crate::deliveries::lane_of) returns it.
    pub(crate) lane: String,
}

/// Waits until no other transaction holds a delivery that waits, such as one that records its end.
pub(crate) fn lock_waiting(connection: &mut PgConnection, id: DeliveryId) -> Result<(), Error> {
    let row = deliveries::table.find(id).for_update();
    let _locked: Option<DeliveryId> = row.select(deliveries::id).first(connection).optional()?;
    Ok(())
}

/// Makes deliveries due now and their webhooks pending if the deliveries are of their newest events, inside a transaction
/// that has locked their tasks.
pub(crate) fn restart(
    connection: &mut PgConnection,
    ids: &[DeliveryId],
) -> Result<Vec<DueDelivery>, Error> {
    let restart = prepared(RESTART).bind::<Array<Binary>, _>(ids);
    Ok(restart.returning::<(Binary, Text)>().load(connection)?)
}

// The schedule starts again. The status of a webhook is about its newest event. If a waiting delivery is being sent at
// this moment, that attempt counts. A withdrawal is hidden from workers of earlier versions, as when it was decided.
const RESTART: &str = "
WITH waiting AS (
    UPDATE deliveries SET next_attempt = now(), attempts = 0, lost_claims = 0, lost_trials = 0
    WHERE id = ANY($1)
    RETURNING id, webhook_id, due_at, lane
), finished AS (
    DELETE FROM finished_deliveries WHERE id = ANY($1)
    RETURNING id, webhook_id, task_id, request_id, traceparent, created, lease, attempt_log, due_at
), inserted AS (
    INSERT INTO deliveries
        (id, webhook_id, task_id, host, lane, request_id, traceparent, created, lease, attempt_log, due_at, has_options)
    SELECT finished.id, webhook_id, finished.task_id, host, coalesce(lane, ''), request_id, traceparent,
        finished.created, lease + 1, attempt_log, due_at, options IS NOT NULL OR due_at IS NULL AND cancelled
    FROM finished JOIN webhooks ON webhooks.id = ANY(ARRAY[webhook_id])
        JOIN task_states ON task_states.task_id = ANY(ARRAY[finished.task_id])
    RETURNING id, webhook_id, due_at, lane
), restarted AS (
    SELECT * FROM waiting UNION ALL SELECT * FROM inserted
), followed AS (
    UPDATE webhooks SET status = 'pending' FROM restarted
    WHERE webhooks.id = ANY(ARRAY[restarted.webhook_id]) AND (due_at IS NULL OR due_at = last_due)
)
SELECT id, lane FROM restarted";

/// Locks the waiting deliveries of webhooks of a task until the end of the transaction, which has locked the task.
pub(crate) fn lock_of_webhooks(
    connection: &mut PgConnection,
    task: TaskId,
    webhooks: &[WebhookId],
) -> Result<(), Error> {
    let _locked: Vec<DeliveryId> = deliveries::table
        .filter(deliveries::task_id.eq(task))
        .filter(deliveries::webhook_id.eq_any(webhooks))
        .for_update()
        .select(deliveries::id)
        .load(connection)?;
    Ok(())
}

/// Locks those waiting deliveries of tasks that no other transaction has locked, until the end of the transaction.
/// Returns the tasks that have another one.
pub(crate) fn lock_free_of_tasks(
    connection: &mut PgConnection,
    tasks: &[TaskId],
) -> Result<Vec<TaskId>, Error> {
    let rows = deliveries::table.filter(deliveries::task_id.eq_any(tasks));
    Ok(lock_free_rows!(connection, rows, deliveries of type DeliveryId, task_id))
}

/// Locks those waiting deliveries of webhooks that no other transaction has locked, until the end of the transaction.
/// Returns the webhooks that have another one.
pub(crate) fn lock_free_of_webhooks(
    connection: &mut PgConnection,
    webhooks: &[WebhookId],
) -> Result<Vec<WebhookId>, Error> {
    let tasks = webhooks::table
        .filter(webhooks::id.eq_any(webhooks))
        .select(webhooks::task_id);
    let rows = deliveries::table
        .filter(deliveries::task_id.eq_any(tasks))
        .filter(deliveries::webhook_id.eq_any(webhooks));
    Ok(lock_free_rows!(connection, rows, deliveries of type DeliveryId, webhook_id))
}

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
    prepared(CREATE_PARTITIONS).execute(connection)?;
    let cancel = prepared(CANCEL).bind::<Array<Binary>, _>(ids);
    Ok(cancel.returning::<Binary>().load(connection)?)
}

// Workers create them ahead, but none may have run for two weeks. The names are those of the function.
const CREATE_PARTITIONS: &str = "SELECT create_finished_deliveries_partitions()
    WHERE to_regclass('finished_deliveries_' || to_char(now() AT TIME ZONE 'UTC', 'YYYYMMDD')) IS NULL";

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

/// How many deliveries of a host one transaction changes at most.
const BATCH: i64 = 250;
/// What remains is counted up to this number.
const MAX_COUNTED: i64 = 100_000;

pub(crate) type OfTasks = Vec<(DeliveryId, TaskId)>;

/// Locks pending deliveries of a host with their webhooks, those whose next attempt comes first.
pub(crate) fn lock_pending(connection: &mut PgConnection, host: &str) -> Result<OfTasks, Error> {
    let locked: Vec<(DeliveryId, TaskId, WebhookId)> = deliveries::table
        .filter(deliveries::host.eq(host))
        .order(deliveries::next_attempt)
        .limit(BATCH)
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
pub(crate) fn lock_failed(connection: &mut PgConnection, host: &str) -> Result<OfTasks, Error> {
    // The status is a literal, for which Postgres uses the partial index.
    let lock = prepared(
        "SELECT id, task_id FROM finished_deliveries WHERE status = 'fail' AND host = $1
        ORDER BY id LIMIT $2 FOR UPDATE SKIP LOCKED",
    );
    let lock = lock.bind::<Text, _>(host).bind::<BigInt, _>(BATCH);
    Ok(lock.returning::<(Binary, Binary)>().load(connection)?)
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

/// Counts deliveries of a host, up to [`MAX_COUNTED`].
pub(crate) fn count(
    connection: &mut PgConnection,
    deliveries: &'static str,
    host: &str,
) -> Result<i64, Error> {
    let count = prepared(deliveries)
        .bind::<Text, _>(host)
        .bind::<BigInt, _>(MAX_COUNTED);
    Ok(count.returning::<BigInt>().get_result(connection)?)
}
