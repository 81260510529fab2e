//! The statements that load deliveries to be sent. They are raw SQL because each reads many rows of several tables in one
//! round trip (`unnest`, `LATERAL`, recursion), which diesel's query builder cannot express.
//!
//! Loading changes nothing, except that deliveries which may have ended a worker are marked: [why](../../../../../docs/decisions/workers-own-hosts.md).
//! Deliveries to a paused host are not loaded.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Instant;

use chrono::{DateTime, Utc};
use database::{Error, column, prepared};
use diesel::deserialize::{self, FromSql, FromSqlRow};
use diesel::pg::{Pg, PgValue};
use diesel::sql_types::{Array, BigInt, Binary, Bool, Integer, Nullable, Text, Timestamptz};
use diesel::{PgConnection, QueryResult, QueryableByName, RunQueryDsl as _};
use values::{DeliveryId, UserId, WebhookId};

use crate::deliveries::hosts::store::load_paused;
use crate::deliveries::worker::shards::Shards;
use crate::planning::planning;
use crate::schema::{deliveries, webhooks};
use crate::tasks::{Task, task_columns};

/// No commit waits for the disk: a crash of the database may undo a result that was just committed, and then the delivery
/// is made again.
pub(super) const ON_CONNECT: &str = concat!(planning!(), "SET synchronous_commit = off;");

/// The clock of the database, which all workers share: what it showed when a row was read, and how long ago that was.
#[derive(Debug, Clone, Copy, FromSqlRow)]
pub(super) struct Clock {
    pub(super) shown: DateTime<Utc>,
    pub(super) read: Instant,
}

impl Clock {
    pub(super) fn now(self) -> DateTime<Utc> {
        self.shown + self.read.elapsed()
    }
}

impl FromSql<Timestamptz, Pg> for Clock {
    fn from_sql(value: PgValue<'_>) -> deserialize::Result<Self> {
        let (shown, read) = (DateTime::from_sql(value)?, Instant::now());
        Ok(Self { shown, read })
    }
}

#[derive(QueryableByName)]
#[diesel(table_name = deliveries)]
pub(super) struct DueRow {
    #[diesel(sql_type = Binary)]
    pub(super) delivery_id: DeliveryId,
    pub(super) webhook_id: WebhookId,
    pub(super) lane: String,
    pub(super) host: String,
    /// The version of the row. A result counts only if the row still has it.
    pub(super) lease: i32,
    /// It is marked, because it may end workers.
    #[diesel(sql_type = Bool)]
    pub(super) is_marked: bool,
    pub(super) attempts: i32,
    /// It was started again by hand: more attempts are logged than count.
    #[diesel(sql_type = Bool)]
    pub(super) is_restarted: bool,
    pub(super) next_attempt: DateTime<Utc>,
    pub(super) request_id: String,
    pub(super) traceparent: String,
    #[diesel(sql_type = Timestamptz)]
    pub(super) clock: Clock,
    #[diesel(sql_type = Timestamptz)]
    pub(super) delivery_created: DateTime<Utc>,
    /// The due date that has passed; `None` for a decision.
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
    #[diesel(sql_type = Nullable<Text>)]
    pub(super) options: Option<String>,
    #[diesel(embed)]
    pub(super) registrant: Registrant,
    #[diesel(embed)]
    pub(super) task: Task,
}

/// The user who registered a webhook: what gave the right to do so, and what is known of changes since then.
#[derive(QueryableByName)]
#[diesel(table_name = webhooks)]
pub(super) struct Registrant {
    pub(super) registered_by: UserId,
    /// `None` for webhooks of versions before 0.3.0.
    pub(super) registered_as: Option<String>,
    /// The address that was the approver's or the requester's.
    pub(super) registrant_email: Option<String>,
    /// The hash of the secret that was the approver's or the requester's.
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

/// What is sent, of the rows that `$due` selects.
macro_rules! load {
    ($due:literal) => {
        concat!(
            "WITH due AS MATERIALIZED (",
            $due,
            ") SELECT ",
            task_columns!(),
            ", due.id AS delivery_id, due.webhook_id, due.lane, due.host, due.lease, coalesce(due.lost_claims, due.option_claims) > 0 AS is_marked,
    due.attempts, due.attempts < jsonb_array_length(due.attempt_log) AS is_restarted, due.next_attempt, due.request_id,
    due.traceparent, clock_timestamp() AS clock, due.created AS delivery_created, due.due_at,
    due.suspended_for IS NOT NULL AS suspended, webhooks.url, webhooks.secret, webhooks.with_task_id, webhooks.options,
    webhooks.registered_by, webhooks.registered_as, webhooks.registrant_email, webhooks.registrant_secret,
    changed_users.is_active, changed_users.is_admin, changed_users.email AS user_email
FROM due
JOIN webhooks ON webhooks.id = ANY(ARRAY[due.webhook_id])
JOIN tasks ON tasks.id = ANY(ARRAY[due.task_id])
JOIN task_states ON task_states.task_id = ANY(ARRAY[due.task_id])
LEFT JOIN changed_users ON changed_users.id = ANY(ARRAY[webhooks.registered_by])"
        )
    };
}

/// Loads some of these by [`KNOWN`], [`BY_ID`] or [`TESTS`].
pub(super) fn load(
    connection: &mut PgConnection,
    rows: &'static str,
    ids: &[DeliveryId],
) -> QueryResult<Vec<DueRow>> {
    let load = prepared(rows).bind::<Array<Binary>, _>(ids);
    load.load(connection)
}

/// Those of some deliveries that are due.
// The sum keeps the index of lanes, which has this column, from being read as a whole.
pub(super) const KNOWN: &str = load!(
    "SELECT * FROM deliveries
    WHERE id = ANY($1) AND next_attempt + interval '0' <= now() AND coalesce(lost_claims, option_claims) < 2
        AND host NOT IN (SELECT host FROM paused_hosts)"
);

/// Loads the deliveries of each lane that have been due longest, at most the number beside it, without those of `except`.
pub(super) fn load_of_lanes(
    connection: &mut PgConnection,
    lanes: &[(Arc<str>, usize)],
    except: &[DeliveryId],
) -> QueryResult<Vec<DueRow>> {
    let number = |(_, number): &(_, usize)| i64::try_from(*number).unwrap_or(i64::MAX);
    prepared(LOAD_OF_LANES)
        .bind::<Array<Text>, _>(column(lanes, |(lane, _)| &**lane))
        .bind::<Array<BigInt>, _>(column(lanes, number))
        .bind::<Array<Binary>, _>(except)
        .load(connection)
}

// Each row is looked up in a hash table of the third array. `<> ALL($3)` would compare it with hundreds of elements.
const LOAD_OF_LANES: &str = load!(
    "SELECT next.* FROM unnest($1, $2) AS wanted (lane, number) CROSS JOIN LATERAL (
        SELECT * FROM deliveries
        WHERE deliveries.lane = wanted.lane AND next_attempt <= now()
            AND coalesce(lost_claims, option_claims) < 2 AND id NOT IN (SELECT unnest($3))
            AND host NOT IN (SELECT host FROM paused_hosts)
        ORDER BY next_attempt LIMIT wanted.number
    ) AS next"
);

pub(super) struct ScannedLanes {
    /// Lanes with deliveries that may be due.
    pub(super) due: Vec<String>,
    /// The last lane that was looked at; empty if no lane comes after it.
    pub(super) last: String,
    /// Whether it found any lane, be its deliveries due or not.
    pub(super) found: bool,
    /// All hosts that are paused.
    pub(super) paused: Vec<String>,
}

/// Finds lanes with deliveries that may be due and whose host is not paused, among the next `limit` lanes after `after`
/// in alphabetical order. Each lane takes one step in an index, however many deliveries it has.
pub(super) fn scan_lanes(
    connection: &mut PgConnection,
    after: &str,
    limit: i64,
) -> Result<ScannedLanes, Error> {
    let paused = load_paused(connection)?;
    let lanes: Vec<(String, bool)> = prepared(SCAN_LANES)
        .bind::<Text, _>(after)
        .bind::<BigInt, _>(limit)
        .returning::<(Text, Bool)>()
        .load(connection)?;
    let is_full = i64::try_from(lanes.len()).is_ok_and(|found| found >= limit);
    let last = lanes.last().filter(|_| is_full);
    let last = last.map(|(lane, _)| lane.clone()).unwrap_or_default();
    let found = !lanes.is_empty();
    let due = lanes.into_iter().filter(|(_, is_due)| *is_due);
    Ok(ScannedLanes {
        found,
        due: due.map(|(lane, _)| lane).collect(),
        last,
        paused,
    })
}

const SCAN_LANES: &str = "
WITH RECURSIVE step AS (
    (SELECT lane, host, next_attempt FROM deliveries WHERE lane > $1 ORDER BY lane, next_attempt LIMIT 1)
    UNION ALL
    SELECT following.lane, following.host, following.next_attempt FROM step CROSS JOIN LATERAL (
        SELECT lane, host, next_attempt FROM deliveries WHERE deliveries.lane > step.lane
        ORDER BY lane, next_attempt LIMIT 1
    ) AS following
)
SELECT lane, next_attempt <= now() AND host NOT IN (SELECT host FROM paused_hosts) AS due FROM step LIMIT $2";

/// Those of some deliveries, whether they are due or not.
pub(super) const BY_ID: &str = load!("SELECT * FROM deliveries WHERE id = ANY($1)");

/// Calls that try webhooks, as if they were deliveries.
pub(super) const TESTS: &str = load!(
    "SELECT tests.id, webhook_id, task_id, coalesce(lane, '') AS lane, host, 0 AS lease, 0 AS lost_claims,
        0 AS option_claims, 0 AS attempts, requested AS next_attempt, request_id, traceparent, requested AS created,
        '[]'::jsonb AS attempt_log, NULL::timestamptz AS due_at, NULL::bytea AS suspended_for
    FROM webhook_tests AS tests JOIN webhooks ON webhooks.id = ANY(ARRAY[webhook_id]) WHERE tests.id = ANY($1)"
);

/// How many trials that ended a worker park a delivery. With three, one that was innocent was parked among those of ten minutes
/// in which processes were killed 75 times.
const MAX_TRIALS: i32 = 5;

/// Marks those deliveries that were created before the time, and forgets those that another transaction holds.
pub(super) fn mark(
    connection: &mut PgConnection,
    rows: &mut Vec<DueRow>,
    created_before: DateTime<Utc>,
) -> QueryResult<()> {
    let mut ids = Vec::new();
    for row in rows.iter_mut() {
        if row.delivery_created < created_before {
            row.is_marked = true;
            ids.push(row.delivery_id);
        }
    }
    if ids.is_empty() {
        return Ok(());
    }
    // Two: the worker that has died may have sent it, and this one will.
    let mark = "UPDATE deliveries SET lost_claims = 2 WHERE id = ANY(ARRAY(
        SELECT id FROM deliveries WHERE id = ANY($1) FOR NO KEY UPDATE SKIP LOCKED)) RETURNING id";
    let mark = prepared(mark).bind::<Array<Binary>, _>(ids);
    let marked: Vec<DeliveryId> = mark.returning::<Binary>().load(connection)?;
    let marked: HashSet<_> = marked.into_iter().collect();
    rows.retain(|row| row.delivery_created >= created_before || marked.contains(&row.delivery_id));
    Ok(())
}

/// What became of the suspects that were looked at.
#[derive(Default)]
pub(super) struct Trial {
    pub(super) row: Option<Box<DueRow>>,
    /// How many trials had ended a worker.
    pub(super) lost: usize,
    /// How many deliveries were parked because of that.
    pub(super) parked: usize,
}

/// Begins the trial of a suspect of these shards that is not under way. Suspects whose last trial ended a worker first
/// wait, longer each time, or are parked.
pub(super) fn begin_trial(
    connection: &mut PgConnection,
    shards: Shards,
    under_way: &[DeliveryId],
) -> Result<Trial, Error> {
    let suspects: Vec<(DeliveryId, String, bool)> = prepared(SUSPECTS)
        .bind::<Array<Binary>, _>(under_way)
        .bind::<Integer, _>(MAX_TRIALS)
        .returning::<(Binary, Text, Bool)>()
        .load(connection)?;
    let mut trial = Trial::default();
    for (id, host, on_trial) in suspects {
        // This transaction may hold other suspects, so it waits for none.
        let lock = "SELECT FROM deliveries WHERE id = $1 FOR NO KEY UPDATE SKIP LOCKED";
        let lock = prepared(lock).bind::<Binary, _>(id);
        if !shards.contain(&host) || lock.execute(connection)? == 0 {
            continue;
        }
        if on_trial {
            let is_parked: bool = prepared(END_LOST_TRIAL)
                .bind::<Binary, _>(id)
                .bind::<Integer, _>(MAX_TRIALS)
                .returning::<Bool>()
                .get_result(connection)?;
            trial.lost += 1;
            trial.parked += usize::from(is_parked);
            continue;
        }
        prepared(
            "UPDATE deliveries SET on_trial = true, lost_trials = lost_trials + 1 WHERE id = $1",
        )
        .bind::<Binary, _>(id)
        .execute(connection)?;
        trial.row = load(connection, BY_ID, &[id])?.pop().map(Box::new);
        break;
    }
    Ok(trial)
}

// Each part reads an index of its own. The second is of deliveries to webhooks with options. One of each creator comes
// before the second of any, in random order, so that the many suspects of one do not keep others waiting.
const SUSPECTS: &str = "
SELECT id, host, on_trial FROM (
    (SELECT id, host, on_trial, lane, next_attempt FROM deliveries
    WHERE lost_claims >= 2 AND next_attempt <= now() AND (lost_trials < $2 OR on_trial) AND id NOT IN (SELECT unnest($1))
        AND host NOT IN (SELECT host FROM paused_hosts)
    ORDER BY next_attempt LIMIT 4096)
    UNION ALL
    (SELECT id, host, on_trial, lane, next_attempt FROM deliveries
    WHERE option_claims >= 2 AND next_attempt <= now() AND (lost_trials < $2 OR on_trial) AND id NOT IN (SELECT unnest($1))
        AND host NOT IN (SELECT host FROM paused_hosts)
    ORDER BY next_attempt LIMIT 4096)
) AS suspects
ORDER BY row_number() OVER (PARTITION BY creator_of_lane(lane) ORDER BY next_attempt), random() LIMIT 1024";

const END_LOST_TRIAL: &str = "
UPDATE deliveries SET on_trial = false,
    next_attempt = now() + least(interval '16 seconds', interval '2 seconds' * power(2, lost_trials)),
    attempt_log = CASE WHEN lost_trials < $2 THEN attempt_log
        ELSE attempt_log || jsonb_build_array(jsonb_build_object(
            'at', to_char(now() AT TIME ZONE 'UTC', 'YYYY-MM-DD\"T\"HH24:MI:SS.MS\"Z\"'), 'durationMs', 0,
            'statusCode', NULL, 'response', NULL,
            'error', 'parked: five workers ended while they sent this delivery; redeliver it to try again')) END
WHERE id = $1 RETURNING lost_trials >= $2";
