use std::collections::HashMap;

use chrono::{DateTime, Utc};
use database::{Error, prepared};
use diesel::dsl::{IntervalDsl as _, now};
use diesel::prelude::*;
use diesel::sql_types::{Array, BigInt, Binary, Timestamptz};
use listing::Paging;
use values::{DeliveryId, TaskId, WebhookId};

use crate::schema::{deliveries, delivery_attempts, tasks, webhooks};
use crate::status::{DeliveryStatus, TaskStatus};

/// For so many seconds sweeps leave a row alone that its maker is about to publish.
pub(crate) const PUBLISHED_BY_ITS_MAKER: i32 = 5;

/// Attempts of a delivery that are shown, the newest ones: nothing limits how often one is sent again.
const SHOWN_ATTEMPTS: i64 = 100;

/// A delivery, and what it reports.
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

/// One attempt of a delivery.
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

/// Which rows and columns a [`Delivery`] is made of.
macro_rules! reported {
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

/// The deliveries of a task, oldest first, and one more than the page has.
pub(crate) fn of_task(
    connection: &mut PgConnection,
    task: TaskId,
    paging: Paging,
) -> Result<Vec<Delivery>, Error> {
    let rows = reported!()
        .filter(deliveries::task_id.eq(task))
        .order(deliveries::id)
        .limit(paging.rows_to_fetch())
        .offset(paging.offset)
        .load(connection);
    Ok(rows?)
}

/// The delivery, if it exists.
pub(crate) fn find(
    connection: &mut PgConnection,
    id: DeliveryId,
) -> Result<Option<Delivery>, Error> {
    let found = reported!()
        .filter(deliveries::id.eq(id))
        .first(connection)
        .optional();
    Ok(found?)
}

/// The task of a delivery that is locked until the end of the transaction, if the delivery exists.
pub(crate) fn lock(connection: &mut PgConnection, id: DeliveryId) -> Result<Option<TaskId>, Error> {
    let found = deliveries::table
        .find(id)
        .for_no_key_update()
        .select(deliveries::task_id)
        .first(connection)
        .optional();
    Ok(found?)
}

/// Makes a locked delivery due now, with its webhook pending again; `false` when it is being sent at
/// this moment.
pub(crate) fn restart(connection: &mut PgConnection, id: DeliveryId) -> Result<bool, Error> {
    let idle = deliveries::lease_until
        .is_null()
        .or(deliveries::lease_until.lt(now.into_sql::<Timestamptz>().nullable()))
        .or(deliveries::finished.is_not_null().nullable());
    let wake_at = now.into_sql::<Timestamptz>() + PUBLISHED_BY_ITS_MAKER.seconds();
    let webhook: Option<WebhookId> = diesel::update(deliveries::table.find(id).filter(idle))
        .set((
            deliveries::status.eq(DeliveryStatus::Pending),
            deliveries::finished.eq(None::<DateTime<Utc>>),
            deliveries::next_attempt.eq(now),
            deliveries::wake_at.eq(wake_at),
            deliveries::lease_until.eq(None::<DateTime<Utc>>),
            // A whole new schedule.
            deliveries::attempts.eq(0),
            deliveries::unanswered.eq(0),
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

/// Deliveries with their newest attempts, oldest first, by one statement for all of them.
pub(crate) fn with_attempts(
    connection: &mut PgConnection,
    deliveries: Vec<Delivery>,
) -> Result<Vec<(Delivery, Vec<Attempt>)>, Error> {
    let ids: Vec<_> = deliveries.iter().map(|delivery| delivery.id).collect();
    // The DSL knows no LATERAL.
    let rows: Vec<Attempt> = prepared(
        "SELECT attempt.* FROM unnest($1) AS delivery (id) CROSS JOIN LATERAL (
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
