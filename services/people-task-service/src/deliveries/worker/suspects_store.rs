//! The statements about deliveries that may end workers, in raw SQL because diesel has no arithmetic with intervals.
//!
//! An ordinary attempt writes nothing before it. So after a worker has died, the next owner of its shards [marks](mark)
//! every older delivery before it is sent. If that owner dies as well, the marked ones are suspected, and are tried one
//! after the other. A delivery whose trials ended three workers is parked: it waits until it is redelivered.

use chrono::{DateTime, Utc};
use database::{Error, prepared};
use diesel::sql_types::{Array, Binary, Bool, Integer, Text};
use diesel::{PgConnection, QueryResult, RunQueryDsl as _};
use values::DeliveryId;

use crate::deliveries::worker::due_store::{DueRow, load_trial};
use crate::deliveries::worker::shards::Shards;

/// How many trials that ended a worker park a delivery.
const MAX_TRIALS: i32 = 3;

/// Marks those deliveries that were created before the time.
pub(super) fn mark(
    connection: &mut PgConnection,
    rows: &mut [DueRow],
    created_before: DateTime<Utc>,
) -> QueryResult<()> {
    let mut ids = Vec::new();
    for row in rows {
        if row.delivery_created < created_before {
            row.is_marked = true;
            ids.push(row.delivery_id);
        }
    }
    if ids.is_empty() {
        return Ok(());
    }
    // Two: the worker that has died may have sent it, and this one will.
    prepared("UPDATE deliveries SET lost_claims = 2 WHERE id = ANY($1)")
        .bind::<Array<Binary>, _>(ids)
        .execute(connection)?;
    Ok(())
}

/// What became of the suspects that were looked at.
#[derive(Default)]
pub(super) struct Trial {
    /// The delivery to be tried now.
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
        if !shards.contain(&host) {
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
        trial.row = load_trial(connection, id)?.map(Box::new);
        break;
    }
    Ok(trial)
}

// Each part reads an index of its own. The second is of deliveries to webhooks with options.
const SUSPECTS: &str = "
SELECT id, host, on_trial FROM (
    (SELECT id, host, on_trial, next_attempt FROM deliveries
    WHERE lost_claims >= 2 AND next_attempt <= now() AND (lost_trials < $2 OR on_trial) AND id <> ALL($1)
        AND host NOT IN (SELECT host FROM paused_hosts)
    ORDER BY next_attempt LIMIT 256)
    UNION ALL
    (SELECT id, host, on_trial, next_attempt FROM deliveries
    WHERE option_claims >= 2 AND next_attempt <= now() AND (lost_trials < $2 OR on_trial) AND id <> ALL($1)
        AND host NOT IN (SELECT host FROM paused_hosts)
    ORDER BY next_attempt LIMIT 256)
) AS suspects
ORDER BY next_attempt LIMIT 256";

const END_LOST_TRIAL: &str = "
UPDATE deliveries SET on_trial = false,
    next_attempt = now() + least(interval '5 minutes', interval '4 seconds' * power(2, lost_trials)),
    attempt_log = CASE WHEN lost_trials < $2 THEN attempt_log
        ELSE attempt_log || jsonb_build_array(jsonb_build_object(
            'at', to_char(now() AT TIME ZONE 'UTC', 'YYYY-MM-DD\"T\"HH24:MI:SS.MS\"Z\"'), 'durationMs', 0,
            'statusCode', NULL, 'response', NULL,
            'error', 'parked: three workers ended while they sent this delivery; redeliver it to try again')) END
WHERE id = $1 RETURNING lost_trials >= $2";
