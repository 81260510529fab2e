use std::collections::HashMap;

use chrono::{DateTime, Utc};
use database::{Error, LimitedRows, RowLimit, interval, load_limited, prepared};
use diesel::dsl::{now, sql_query};
use diesel::prelude::*;
use diesel::sql_types::{Array, BigInt, Binary, Timestamptz};
use jobs::REPUBLISH_GRACE;
use listing::Paging;
use telemetry::RequestContext;
use values::{DeliveryId, TaskId, WebhookId};

use crate::deliveries::host_of;
use crate::free_rows::lock_free_rows;
use crate::schema::{deliveries, delivery_attempts, tasks, webhooks};
use crate::status::{DeliveryStatus, TaskStatus};

/// How many attempts of a delivery a response has. Redelivering makes their number unlimited.
const SHOWN_ATTEMPTS: i64 = 100;

/// A delivery, with what responses show of its webhook and task.
#[derive(Debug, Clone, Queryable)]
pub(crate) struct Delivery {
    pub(crate) id: DeliveryId,
    pub(crate) webhook_id: WebhookId,
    pub(crate) url: String,
    pub(crate) task_status: TaskStatus,
    pub(crate) status: DeliveryStatus,
    pub(crate) created: DateTime<Utc>,
    pub(crate) next_attempt: DateTime<Utc>,
}

/// An attempt of a delivery.
#[derive(Debug, Clone, QueryableByName)]
#[diesel(table_name = delivery_attempts)]
#[diesel(check_for_backend(diesel::pg::Pg))]
pub(crate) struct Attempt {
    pub(crate) delivery_id: DeliveryId,
    pub(crate) at: DateTime<Utc>,
    pub(crate) duration_ms: i32,
    pub(crate) status_code: Option<i32>,
    pub(crate) error: Option<String>,
    pub(crate) response: Option<String>,
}

/// A delivery with its attempts, oldest first.
pub(crate) type DeliveryWithAttempts = (Delivery, Vec<Attempt>);

/// The tables and columns of a [`Delivery`].
macro_rules! select_delivery {
    () => {
        deliveries::table
            .inner_join(webhooks::table)
            .inner_join(tasks::table)
            .select((
                deliveries::id,
                deliveries::webhook_id,
                webhooks::url,
                tasks::status,
                deliveries::status,
                deliveries::created,
                deliveries::next_attempt,
            ))
    };
}

/// Loads a page of a task's deliveries, oldest first. Their size includes the attempts that are shown.
pub(crate) fn load_of_task(
    connection: &mut PgConnection,
    task: TaskId,
    paging: Paging,
    limit: RowLimit,
) -> Result<LimitedRows<Delivery>, Error> {
    let query = select_delivery!()
        .filter(deliveries::task_id.eq(task))
        .order(deliveries::id)
        .limit(paging.rows_to_fetch())
        .offset(paging.offset);
    let size = format!(
        "octet_length(url) + 512 + coalesce((
            SELECT sum(coalesce(octet_length(response), 0) + coalesce(octet_length(error), 0) + 256)
            FROM (
                SELECT response, error FROM delivery_attempts WHERE delivery_id = page.id
                ORDER BY number DESC LIMIT {SHOWN_ATTEMPTS}
            ) AS shown
        ), 0)"
    );
    Ok(load_limited(connection, query, size, limit)?)
}

/// Inserts the delivery of a task's decision to a webhook that was registered after it.
pub(crate) fn insert(
    connection: &mut PgConnection,
    task: TaskId,
    (webhook, url): (WebhookId, &str),
    cause: &RequestContext,
) -> Result<DeliveryId, Error> {
    let id = DeliveryId::generate();
    let row = (
        deliveries::id.eq(id),
        deliveries::webhook_id.eq(webhook),
        deliveries::task_id.eq(task),
        deliveries::origin.eq(host_of(url)),
        deliveries::request_id.eq(&cause.request_id),
        deliveries::traceparent.eq(cause.trace.to_string()),
        deliveries::republish_at.eq(now.into_sql::<Timestamptz>() + interval(REPUBLISH_GRACE)),
    );
    diesel::insert_into(deliveries::table)
        .values(row)
        .execute(connection)?;
    Ok(id)
}

/// Finds a delivery.
pub(crate) fn find(
    connection: &mut PgConnection,
    id: DeliveryId,
) -> Result<Option<Delivery>, Error> {
    let found = select_delivery!()
        .filter(deliveries::id.eq(id))
        .first(connection)
        .optional();
    Ok(found?)
}

/// Locks a delivery until the end of the transaction, and returns its task.
pub(crate) fn lock(connection: &mut PgConnection, id: DeliveryId) -> Result<Option<TaskId>, Error> {
    let found = deliveries::table
        .find(id)
        .for_no_key_update()
        .select(deliveries::task_id)
        .first(connection)
        .optional();
    Ok(found?)
}

/// Makes a locked delivery due now and its webhook pending. Returns `false` if the delivery is being sent at
/// this moment.
pub(crate) fn restart(connection: &mut PgConnection, id: DeliveryId) -> Result<bool, Error> {
    let idle = deliveries::lease_until
        .is_null()
        .or(deliveries::lease_until.lt(now.into_sql::<Timestamptz>().nullable()))
        .or(deliveries::finished.is_not_null().nullable());
    let republish_at = now.into_sql::<Timestamptz>() + interval(REPUBLISH_GRACE);
    let webhook: Option<WebhookId> = diesel::update(deliveries::table.find(id).filter(idle))
        .set((
            deliveries::status.eq(DeliveryStatus::Pending),
            deliveries::finished.eq(None::<DateTime<Utc>>),
            deliveries::next_attempt.eq(now),
            deliveries::republish_at.eq(republish_at),
            deliveries::lease_until.eq(None::<DateTime<Utc>>),
            // A worker whose lease ran out may still have a result, which must not count now.
            deliveries::lease.eq(deliveries::lease + 1),
            // The retry schedule starts again.
            deliveries::attempts.eq(0),
            deliveries::claims_without_result.eq(0),
        ))
        .returning(deliveries::webhook_id)
        .get_result(connection)
        .optional()?;
    if let Some(webhook) = webhook {
        diesel::update(webhooks::table.find(webhook))
            .set(webhooks::status.eq(DeliveryStatus::Pending))
            .execute(connection)?;
    }
    Ok(webhook.is_some())
}

/// Adds their newest attempts to deliveries.
pub(crate) fn load_attempts(
    connection: &mut PgConnection,
    deliveries: Vec<Delivery>,
) -> Result<Vec<DeliveryWithAttempts>, Error> {
    let ids: Vec<_> = deliveries.iter().map(|delivery| delivery.id).collect();
    // diesel's query builder has no LATERAL.
    let rows: Vec<Attempt> = prepared(
        "SELECT attempt.delivery_id, attempt.at, attempt.duration_ms, attempt.status_code, attempt.error,
            attempt.response
        FROM unnest($1) AS delivery (id) CROSS JOIN LATERAL (
            SELECT * FROM delivery_attempts WHERE delivery_id = delivery.id
            ORDER BY number DESC LIMIT $2
        ) AS attempt
        ORDER BY attempt.delivery_id, attempt.number",
    )
    .bind::<Array<Binary>, _>(ids)
    .bind::<BigInt, _>(SHOWN_ATTEMPTS)
    .load(connection)?;
    let mut attempts: HashMap<DeliveryId, Vec<Attempt>> = HashMap::new();
    for attempt in rows {
        attempts
            .entry(attempt.delivery_id)
            .or_default()
            .push(attempt);
    }
    let with_attempts = deliveries.into_iter().map(|delivery| {
        let attempts = attempts.remove(&delivery.id).unwrap_or_default();
        (delivery, attempts)
    });
    Ok(with_attempts.collect())
}

/// Locks the deliveries of webhooks until the end of the transaction, in the order of their ids.
pub(crate) fn lock_of_webhooks(
    connection: &mut PgConnection,
    webhooks: &[WebhookId],
) -> Result<(), Error> {
    let _locked: Vec<DeliveryId> = deliveries::table
        .filter(deliveries::webhook_id.eq_any(webhooks))
        .order(deliveries::id)
        .for_update()
        .select(deliveries::id)
        .load(connection)?;
    Ok(())
}

/// Locks those deliveries of tasks that no other transaction has locked, until the end of the transaction. Returns
/// the tasks that have another one.
pub(crate) fn lock_free_of_tasks(
    connection: &mut PgConnection,
    tasks: &[TaskId],
) -> Result<Vec<TaskId>, Error> {
    Ok(lock_free_rows!(connection, deliveries of type DeliveryId, task_id in tasks))
}

/// Locks those deliveries of webhooks that no other transaction has locked, until the end of the transaction.
/// Returns the webhooks that have another one.
pub(crate) fn lock_free_of_webhooks(
    connection: &mut PgConnection,
    webhooks: &[WebhookId],
) -> Result<Vec<WebhookId>, Error> {
    Ok(lock_free_rows!(connection, deliveries of type DeliveryId, webhook_id in webhooks))
}

/// Deletes at most `limit` attempts of the deliveries of tasks, and returns how many were deleted.
pub(crate) fn delete_attempts_of_tasks(
    connection: &mut PgConnection,
    tasks: &[TaskId],
    limit: usize,
) -> Result<usize, Error> {
    let tasks = tasks.iter().map(|id| id.as_bytes().as_slice());
    delete_attempts(connection, "task_id", tasks.collect(), limit)
}

/// Deletes at most `limit` attempts of the deliveries of webhooks, and returns how many were deleted.
pub(crate) fn delete_attempts_of_webhooks(
    connection: &mut PgConnection,
    webhooks: &[WebhookId],
    limit: usize,
) -> Result<usize, Error> {
    let webhooks = webhooks.iter().map(|id| id.as_bytes().as_slice());
    delete_attempts(connection, "webhook_id", webhooks.collect(), limit)
}

fn delete_attempts(
    connection: &mut PgConnection,
    column: &'static str,
    ids: Vec<&[u8]>,
    limit: usize,
) -> Result<usize, Error> {
    // The DSL has no LIMIT for DELETE. No other statement changes attempts, so their addresses in the table stay the same.
    let delete = sql_query(format!(
        "DELETE FROM delivery_attempts WHERE ctid = ANY (ARRAY(
            SELECT attempt.ctid FROM deliveries
            JOIN delivery_attempts AS attempt ON attempt.delivery_id = deliveries.id
            WHERE deliveries.{column} = ANY ($1) LIMIT $2))"
    ));
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    Ok(delete
        .bind::<Array<Binary>, _>(ids)
        .bind::<BigInt, _>(limit)
        .execute(connection)?)
}
