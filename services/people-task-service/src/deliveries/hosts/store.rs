//! Statements on hosts. Those that read are raw SQL, because each host takes one step in an index (`LATERAL`, recursion).

use database::{Error, composed, prepared};
use diesel::prelude::*;
use diesel::sql_types::{Array, BigInt, Nullable, Text, Timestamptz};
use serde::Serialize;
use utoipa::ToSchema;
use values::{FromText as _, Timestamp};

use crate::deliveries::requests::{Host, HostStatus};

/// A host with deliveries.
#[derive(Debug, QueryableByName, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = DeliveryHost)]
pub(crate) struct HostRow {
    /// The host of the webhooks' URLs, without scheme and port.
    #[diesel(sql_type = Text)]
    #[schema(example = "engine.example.com")]
    pub(super) host: String,
    /// Since when its deliveries are paused; null if they are not.
    #[diesel(sql_type = Nullable<Timestamptz>)]
    #[schema(value_type = Option<String>, format = DateTime, required = true)]
    paused: Option<Timestamp>,
    /// How many deliveries are pending, counted up to 1,000.
    #[diesel(sql_type = BigInt)]
    #[schema(example = 12)]
    pending: i64,
    /// How many of them had failed attempts.
    #[diesel(sql_type = BigInt)]
    #[schema(example = 3)]
    retrying: i64,
    /// How many deliveries have failed and were not sent again, counted up to 1,000.
    #[diesel(sql_type = BigInt)]
    #[schema(example = 7)]
    failed: i64,
    /// When the next attempt of a pending delivery is due; null if there is none.
    #[diesel(sql_type = Nullable<Timestamptz>)]
    #[schema(value_type = Option<String>, format = DateTime, required = true)]
    next_attempt: Option<Timestamp>,
}

fn hosts(page: &str) -> String {
    format!(
        "WITH RECURSIVE {page}
        SELECT page.host, (SELECT paused FROM paused_hosts WHERE paused_hosts.host = page.host) AS paused,
            pending, retrying, failed, next_attempt
        FROM page CROSS JOIN LATERAL (
            SELECT count(*) AS pending, count(*) FILTER (WHERE attempts > 0) AS retrying,
                min(next_attempt) AS next_attempt
            FROM (
                SELECT attempts, next_attempt FROM deliveries
                WHERE deliveries.host = page.host ORDER BY next_attempt LIMIT 1000
            ) AS first
        ) AS waiting CROSS JOIN LATERAL (
            SELECT count(*) AS failed FROM (
                SELECT FROM finished_deliveries
                WHERE status = 'fail' AND finished_deliveries.host = page.host LIMIT 1000
            ) AS first
        ) AS ended
        ORDER BY page.host"
    )
}

/// The next host after another in alphabetical order, as one step in an index.
fn next(status: Option<HostStatus>, after: &str) -> String {
    let next = |table: &str, condition: &str, order: &str| {
        format!(
            "(SELECT host FROM {table} WHERE {condition}{table}.host > {after} ORDER BY {order} LIMIT 1)"
        )
    };
    let pending = next("deliveries", "", "host, next_attempt");
    let failed = next("finished_deliveries", "status = 'fail' AND ", "host, id");
    let paused = next("paused_hosts", "", "host");
    match status {
        // `least` leaves nulls out.
        None => format!("least({pending}, {failed}, {paused})"),
        Some(HostStatus::Pending) => pending,
        Some(HostStatus::Fail) => failed,
        Some(HostStatus::Paused) => paused,
    }
}

pub(crate) fn load_page(
    connection: &mut PgConnection,
    status: Option<HostStatus>,
    after: &str,
    limit: i64,
) -> Result<Vec<HostRow>, Error> {
    let page = format!(
        "step AS (
            SELECT {first} AS host UNION ALL SELECT {following} FROM step WHERE step.host IS NOT NULL
        ), page AS (
            SELECT host FROM step WHERE host IS NOT NULL LIMIT $2
        )",
        first = next(status, "$1"),
        following = next(status, "step.host"),
    );
    let page = composed(hosts(&page), (), true)
        .bind::<Text, _>(after)
        .bind::<BigInt, _>(limit);
    Ok(page.load(connection)?)
}

/// Loads a host, whether it has deliveries or not.
pub(crate) fn load(connection: &mut PgConnection, host: &str) -> Result<HostRow, Error> {
    let row = composed(hosts("page AS (SELECT $1 AS host)"), (), true).bind::<Text, _>(host);
    Ok(row.get_result(connection)?)
}

/// Counts the other hosts that are paused, in a transaction that pauses this one: no other counts before it has ended.
pub(crate) fn count_other_paused(connection: &mut PgConnection, host: &str) -> Result<i64, Error> {
    prepared("SELECT pg_advisory_xact_lock(hashtextextended('paused_hosts', 0))")
        .execute(connection)?;
    let others = prepared("SELECT count(*) FROM paused_hosts WHERE host <> $1");
    let others = others.bind::<Text, _>(host).returning::<BigInt>();
    Ok(others.get_result(connection)?)
}

pub(crate) fn load_paused(connection: &mut PgConnection) -> Result<Vec<String>, Error> {
    let paused = prepared("SELECT host FROM paused_hosts").returning::<Text>();
    Ok(paused.load(connection)?)
}

/// Records that a host is paused, or that it is not. Returns whether that is a change.
pub(crate) fn set_paused(
    connection: &mut PgConnection,
    host: &str,
    is_paused: bool,
) -> Result<bool, Error> {
    let changed = if is_paused {
        prepared("INSERT INTO paused_hosts (host) VALUES ($1) ON CONFLICT DO NOTHING")
            .bind::<Text, _>(host)
            .execute(connection)?
    } else {
        let paused = load_paused(connection)?;
        // 0.3.0 recorded other spellings, too, such as `bücher.example`.
        let is_host =
            |paused: &&String| Host::from_text(paused).is_ok_and(|it| it.as_str() == host);
        let spellings: Vec<_> = paused.iter().filter(is_host).collect();
        prepared("DELETE FROM paused_hosts WHERE host = ANY($1)")
            .bind::<Array<Text>, _>(spellings)
            .execute(connection)?
    };
    Ok(changed > 0)
}
