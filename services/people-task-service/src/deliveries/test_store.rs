//! Calls that try webhooks, in raw SQL because of its arithmetic with times.

use std::time::Duration;

use auth::Caller;
use database::{Error, prepared};
use diesel::sql_types::{BigInt, Binary, Bool, Jsonb, Nullable, Text};
use diesel::{OptionalExtension as _, PgConnection, Queryable, RunQueryDsl as _};
use serde_json::Value;
use telemetry::RequestContext;
use values::{DeliveryId, UserId, WebhookId};

use crate::deliveries::TestResult;

/// How long a caller waits for the result of a call.
pub(crate) const RESULT_WITHIN: Duration = Duration::from_secs(15);

/// What was requested within the last minute.
#[derive(Queryable)]
pub(crate) struct Lately {
    /// By everyone.
    pub(crate) all: i64,
    /// By the user, or the group of accounts that counts as one with it.
    pub(crate) own: i64,
    /// How long the oldest of all and the oldest of the user's own count, in milliseconds.
    pub(crate) remaining: i64,
    pub(crate) own_remaining: i64,
    pub(crate) is_paused: bool,
}

/// Counts what was requested, in a transaction that inserts another one: no other counts before it has ended.
pub(crate) fn count_lately(
    connection: &mut PgConnection,
    caller: &Caller,
    host: &str,
) -> Result<Lately, Error> {
    prepared("SELECT pg_advisory_xact_lock(hashtextextended('webhook_tests', 0))")
        .execute(connection)?;
    let count = prepared(
        "SELECT count(*) AS all, count(*) FILTER (WHERE is_own) AS own, coalesce(min(remaining), 0)::bigint AS remaining,
            coalesce(min(remaining) FILTER (WHERE is_own), 0)::bigint AS own_remaining,
            EXISTS (SELECT FROM paused_hosts WHERE host = $2) AS is_paused
        FROM (
            SELECT coalesce(account_group, requested_by) = $1 AS is_own,
                extract(epoch FROM requested + interval '1 minute' - now()) * 1000 AS remaining
            FROM webhook_tests WHERE requested > now() - interval '1 minute'
        ) AS lately",
    );
    let own = caller.owner();
    let count = count.bind::<Binary, _>(own).bind::<Text, _>(host);
    let count = count.returning::<(BigInt, BigInt, BigInt, BigInt, Bool)>();
    Ok(count.get_result(connection)?)
}

/// Inserts a call, unless its webhook was deleted. Returns whether it did.
pub(crate) fn insert(
    connection: &mut PgConnection,
    id: DeliveryId,
    webhook: WebhookId,
    caller: &Caller,
    cause: &RequestContext,
) -> Result<bool, Error> {
    let inserted = prepared(
        "INSERT INTO webhook_tests (id, webhook_id, requested_by, account_group, request_id, traceparent)
        SELECT $1, id, $3, $4, $5, $6 FROM webhooks WHERE id = $2 FOR KEY SHARE",
    )
    .bind::<Binary, _>(id)
    .bind::<Binary, _>(webhook)
    .bind::<Binary, _>(caller.id())
    .bind::<Nullable<Binary>, _>(caller.group_id())
    .bind::<Text, _>(cause.request_id.as_str())
    .bind::<Text, _>(cause.trace.to_string())
    .execute(connection)?;
    Ok(inserted > 0)
}

/// The result of a call, if it is known.
pub(crate) fn find_result(
    connection: &mut PgConnection,
    id: DeliveryId,
) -> Result<Option<TestResult>, Error> {
    let find = prepared("SELECT result FROM webhook_tests WHERE id = $1").bind::<Binary, _>(id);
    let find = find.returning::<Nullable<Jsonb>>();
    let result: Option<Option<Value>> = find.get_result(connection).optional()?;
    Ok(result
        .flatten()
        .and_then(|result| serde_json::from_value(result).ok()))
}

/// Lets no worker take a call any more.
pub(crate) fn withdraw(connection: &mut PgConnection, id: DeliveryId) -> Result<(), Error> {
    prepared("UPDATE webhook_tests SET taken = now() WHERE id = $1 AND taken IS NULL")
        .bind::<Binary, _>(id)
        .execute(connection)?;
    Ok(())
}

pub(crate) fn delete_of(connection: &mut PgConnection, user: UserId) -> Result<(), Error> {
    prepared("DELETE FROM webhook_tests WHERE requested_by = $1")
        .bind::<Binary, _>(user)
        .execute(connection)?;
    Ok(())
}

/// Takes calls that wait. No other worker gets them, and one that was forgotten is not made late.
pub(crate) fn take(connection: &mut PgConnection, limit: i64) -> Result<Vec<DeliveryId>, Error> {
    let take = prepared(
        "UPDATE webhook_tests SET taken = now() WHERE id = ANY(ARRAY(
            SELECT id FROM webhook_tests WHERE taken IS NULL AND requested > now() - interval '15 seconds'
            ORDER BY requested LIMIT $1 FOR UPDATE SKIP LOCKED))
        RETURNING id",
    );
    let take = take.bind::<BigInt, _>(limit).returning::<Binary>();
    Ok(take.load(connection)?)
}

pub(crate) fn record(
    connection: &mut PgConnection,
    id: DeliveryId,
    result: &TestResult,
) -> Result<(), Error> {
    let result = serde_json::to_value(result).unwrap_or_default();
    prepared("UPDATE webhook_tests SET result = $2 WHERE id = $1")
        .bind::<Binary, _>(id)
        .bind::<Jsonb, _>(result)
        .execute(connection)?;
    Ok(())
}
