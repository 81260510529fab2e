//! The statements that claim deliveries. They are raw SQL because each acts on many rows of several tables in one round
//! trip (`unnest`, `LATERAL`, `SKIP LOCKED`, writing CTEs), which diesel's query builder cannot express.
//!
//! A claim counts nothing and takes no lock over all workers: the number of concurrent requests to a host is limited in
//! the memory of each worker (see [`membership`](super::membership)). Deliveries to a paused host are not claimed.

use std::sync::Arc;

use chrono::{DateTime, Utc};
use database::prepared;
use diesel::sql_types::{Array, BigInt, Binary, Bool, Integer, Nullable, Text, Timestamptz};
use diesel::{
    OptionalExtension as _, PgConnection, QueryDsl as _, QueryResult, QueryableByName,
    RunQueryDsl as _,
};
use values::{DeliveryId, UserId, WebhookId};

use crate::planning::planning;
use crate::schema::paused_hosts;
use crate::tasks::{Task, task_columns};

/// No commit waits for the disk: a crash of the database may undo a claim or a
/// result that was just committed, and then the delivery is made again.
pub(super) const ON_CONNECT: &str = concat!(planning!(), "SET synchronous_commit = off;");

/// A delivery that a worker has claimed.
#[derive(QueryableByName)]
pub(super) struct ClaimedDelivery {
    #[diesel(sql_type = Binary)]
    pub(super) delivery_id: DeliveryId,
    #[diesel(sql_type = Binary)]
    pub(super) webhook_id: WebhookId,
    #[diesel(sql_type = Integer)]
    pub(super) worker_id: i32,
    #[diesel(sql_type = Integer)]
    pub(super) lease: i32,
    /// It is tried on suspicion that it ends workers.
    #[diesel(sql_type = Bool)]
    pub(super) on_trial: bool,
    #[diesel(sql_type = Text)]
    pub(super) host: String,
    #[diesel(sql_type = Integer)]
    pub(super) attempts: i32,
    #[diesel(sql_type = Text)]
    pub(super) request_id: String,
    #[diesel(sql_type = Text)]
    pub(super) traceparent: String,
    #[diesel(sql_type = Timestamptz)]
    pub(super) delivery_created: DateTime<Utc>,
    /// The due date that has passed; `None` for a decision.
    #[diesel(sql_type = Nullable<Timestamptz>)]
    pub(super) due_at: Option<DateTime<Utc>>,
    /// It has waited for its webhook's registrant to have a right to the task again.
    #[diesel(sql_type = Bool)]
    pub(super) suspended: bool,
    #[diesel(sql_type = Text)]
    pub(super) url: String,
    #[diesel(sql_type = Nullable<Text>)]
    pub(super) secret: Option<String>,
    #[diesel(sql_type = Bool)]
    pub(super) with_task_id: bool,
    #[diesel(embed)]
    pub(super) registrant: Registrant,
    #[diesel(embed)]
    pub(super) task: Task,
}

/// The user who registered a webhook: what gave the right to do so, and what is known of changes since then.
#[derive(QueryableByName)]
pub(super) struct Registrant {
    #[diesel(sql_type = Binary)]
    pub(super) registered_by: UserId,
    /// `None` for webhooks of versions before 0.3.0.
    #[diesel(sql_type = Nullable<Text>)]
    pub(super) registered_as: Option<String>,
    /// The address that was the approver's or the requester's.
    #[diesel(sql_type = Nullable<Text>)]
    pub(super) registrant_email: Option<String>,
    /// The hash of the secret that was the approver's or the requester's.
    #[diesel(sql_type = Nullable<Binary>)]
    pub(super) registrant_secret: Option<Vec<u8>>,
    /// `None`, like the next two, if the user has not changed.
    #[diesel(sql_type = Nullable<Bool>)]
    pub(super) is_active: Option<bool>,
    #[diesel(sql_type = Nullable<Bool>)]
    pub(super) is_admin: Option<bool>,
    /// Also `None` if the address is not confirmed.
    #[diesel(sql_type = Nullable<Text>)]
    pub(super) user_email: Option<String>,
}

/// A claim of the rows whose ids `$free` returns, which it locks. A worker that was taken for dead claims nothing: the
/// lock of its row makes the one that deletes it wait until the claim can be released.
macro_rules! claim {
    ($free:literal, $changes:literal) => {
        concat!(
            "WITH worker AS (
    SELECT id FROM delivery_workers WHERE id = $1 FOR KEY SHARE
), free AS (",
            $free,
            "), claimed AS (
    UPDATE deliveries SET worker_id = (SELECT id FROM worker), lease = lease + 1",
            $changes,
            " WHERE id = ANY(ARRAY(SELECT id FROM free)) AND EXISTS (SELECT FROM worker)
    RETURNING id, webhook_id, task_id, worker_id, lease, on_trial, host, attempts, request_id, traceparent, created,
        due_at, suspended_for IS NOT NULL AS suspended
)
SELECT ",
            task_columns!(),
            ", claimed.id AS delivery_id, claimed.webhook_id, claimed.worker_id, claimed.lease, claimed.on_trial,
    claimed.host, claimed.attempts, claimed.request_id, claimed.traceparent, claimed.created AS delivery_created,
    claimed.due_at, claimed.suspended, webhooks.url, webhooks.secret, webhooks.with_task_id, webhooks.registered_by,
    webhooks.registered_as, webhooks.registrant_email, webhooks.registrant_secret, changed_users.is_active,
    changed_users.is_admin, changed_users.email AS user_email
FROM claimed
JOIN webhooks ON webhooks.id = ANY(ARRAY[claimed.webhook_id])
JOIN tasks ON tasks.id = ANY(ARRAY[claimed.task_id])
JOIN task_states ON task_states.task_id = ANY(ARRAY[claimed.task_id])
LEFT JOIN changed_users ON changed_users.id = ANY(ARRAY[webhooks.registered_by])"
        )
    };
}

/// Claims those of these deliveries that are due and not claimed. Locked rows are skipped.
pub(super) fn claim_known(
    connection: &mut PgConnection,
    worker: i32,
    ids: &[DeliveryId],
) -> QueryResult<Vec<ClaimedDelivery>> {
    prepared(CLAIM_KNOWN)
        .bind::<Integer, _>(worker)
        .bind::<Array<Binary>, _>(ids)
        .load(connection)
}

// The sum keeps the index of hosts, which has this column, from being read as a whole.
const CLAIM_KNOWN: &str = claim!(
    "SELECT id FROM deliveries
    WHERE id = ANY($2) AND worker_id IS NULL AND next_attempt + interval '0' <= now() AND lost_claims < 2
        AND host NOT IN (SELECT host FROM paused_hosts)
    FOR NO KEY UPDATE SKIP LOCKED",
    ""
);

/// How many deliveries to claim for a host.
#[derive(Debug, Clone)]
pub(super) struct HostClaim {
    pub(super) host: Arc<str>,
    pub(super) number: usize,
}

/// Claims the oldest due deliveries of hosts. Locked rows are skipped.
pub(super) fn claim_of_hosts(
    connection: &mut PgConnection,
    worker: i32,
    hosts: &[HostClaim],
) -> QueryResult<Vec<ClaimedDelivery>> {
    let names: Vec<&str> = hosts.iter().map(|claim| &*claim.host).collect();
    let numbers = hosts.iter().map(|claim| i64::try_from(claim.number));
    let numbers: Vec<i64> = numbers.map(|n| n.unwrap_or(i64::MAX)).collect();
    prepared(CLAIM_OF_HOSTS)
        .bind::<Integer, _>(worker)
        .bind::<Array<Text>, _>(names)
        .bind::<Array<BigInt>, _>(numbers)
        .load(connection)
}

const CLAIM_OF_HOSTS: &str = claim!(
    "SELECT next.id FROM unnest($2, $3) AS wanted (host, number) CROSS JOIN LATERAL (
        SELECT id FROM deliveries
        WHERE deliveries.host = wanted.host AND next_attempt <= now() AND worker_id IS NULL AND lost_claims < 2
        ORDER BY next_attempt LIMIT wanted.number
        FOR NO KEY UPDATE SKIP LOCKED
    ) AS next
    WHERE wanted.host NOT IN (SELECT host FROM paused_hosts)",
    ""
);

/// Claims one delivery whose workers ended twice or more without a result, to be tried apart from others. It is one that
/// was claimed least often, because those whose host has no place are released again.
pub(super) fn claim_suspect(
    connection: &mut PgConnection,
    worker: i32,
) -> QueryResult<Option<ClaimedDelivery>> {
    prepared(CLAIM_SUSPECT)
        .bind::<Integer, _>(worker)
        .get_result(connection)
        .optional()
}

const CLAIM_SUSPECT: &str = claim!(
    "SELECT id FROM deliveries
    WHERE lost_claims >= 2 AND next_attempt <= now() AND worker_id IS NULL AND lost_trials < 3
        AND host NOT IN (SELECT host FROM paused_hosts)
    ORDER BY lease, next_attempt LIMIT 1
    FOR NO KEY UPDATE SKIP LOCKED",
    ", on_trial = true"
);

/// Releases every claim of a worker.
pub(super) fn release_all(connection: &mut PgConnection, worker: i32) -> QueryResult<usize> {
    prepared("UPDATE deliveries SET worker_id = NULL, on_trial = false WHERE worker_id = $1")
        .bind::<Integer, _>(worker)
        .execute(connection)
}

#[derive(QueryableByName)]
struct HostRow {
    #[diesel(sql_type = Text)]
    host: String,
    #[diesel(sql_type = Bool)]
    due: bool,
}

/// What a scan found.
#[derive(Default)]
pub(super) struct ScannedHosts {
    /// Hosts with deliveries that may be due.
    pub(super) due: Vec<String>,
    /// The last host that was looked at; empty if no host comes after it.
    pub(super) last: String,
    /// Whether it found any host, be its deliveries due or not.
    pub(super) found_hosts: bool,
    /// All hosts that are paused; `None` if they could not be read.
    pub(super) paused: Option<Vec<String>>,
}

/// Finds hosts with deliveries that may be due and are not paused, among the next `limit` hosts after `after` in alphabetical order. Each
/// host takes one step in an index, however many deliveries it has.
pub(super) fn scan_hosts(
    connection: &mut PgConnection,
    after: &str,
    limit: i64,
) -> QueryResult<ScannedHosts> {
    let paused = paused_hosts::table.select(paused_hosts::host);
    let paused = paused.load(connection)?;
    let hosts: Vec<HostRow> = prepared(SCAN_HOSTS)
        .bind::<Text, _>(after)
        .bind::<BigInt, _>(limit)
        .load(connection)?;
    let full = i64::try_from(hosts.len()).is_ok_and(|found| found >= limit);
    let last = hosts.last().filter(|_| full);
    let last = last.map(|row| row.host.clone()).unwrap_or_default();
    let found_hosts = !hosts.is_empty();
    let due = hosts.into_iter().filter(|row| row.due);
    Ok(ScannedHosts {
        found_hosts,
        due: due.map(|row| row.host).collect(),
        last,
        paused: Some(paused),
    })
}

const SCAN_HOSTS: &str = "
WITH RECURSIVE step AS (
    (SELECT host, next_attempt FROM deliveries WHERE host > $1 ORDER BY host, next_attempt LIMIT 1)
    UNION ALL
    SELECT following.host, following.next_attempt FROM step CROSS JOIN LATERAL (
        SELECT host, next_attempt FROM deliveries WHERE deliveries.host > step.host
        ORDER BY host, next_attempt LIMIT 1
    ) AS following
)
SELECT host, next_attempt <= now() AND host NOT IN (SELECT host FROM paused_hosts) AS due FROM step LIMIT $2";
