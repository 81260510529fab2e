use std::time::Duration;

use chrono::{DateTime, Utc};
use database::{Error, prepared};
use diesel::prelude::*;
use diesel::sql_types::{Array, BigInt, Binary, Nullable, Timestamptz};
use serde::Serialize;
use values::TaskId;

#[derive(Queryable, Serialize)]
pub(super) struct Line {
    /// Where the next response continues, if it is asked for within a minute: when the database was asked.
    pub(super) cursor: DateTime<Utc>,
    /// Tasks that have ended. One may occur twice.
    pub(super) tasks: Vec<TaskId>,
}

/// Finds the tasks that have ended since a time of the database, by default now, and `overlap` before it.
pub(super) fn ended_since(
    connection: &mut PgConnection,
    since: Option<DateTime<Utc>>,
    overlap: Duration,
) -> Result<Line, Error> {
    let overlap = i64::try_from(overlap.as_millis()).unwrap_or(i64::MAX);
    Ok(prepared(ENDED_SINCE)
        .bind::<Nullable<Timestamptz>, _>(since)
        .bind::<BigInt, _>(overlap)
        .returning::<(Timestamptz, Array<Binary>)>()
        .get_result(connection)?)
}

/// The audit log has an index of times, and an entry for each end of a task, which the same transaction inserts. So
/// waiting costs decisions nothing. No cursor leads further back than a minute.
const ENDED_SINCE: &str = "SELECT now() AS cursor, coalesce(array_agg(subject_id), '{}') AS tasks
    FROM audit_log
    WHERE at > greatest(coalesce($1, now()), now() - interval '1 minute') - $2 * interval '1 millisecond'
        AND action IN ('task-approved', 'task-rejected', 'task-cancelled')";
