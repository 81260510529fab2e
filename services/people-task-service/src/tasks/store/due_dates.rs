//! The due dates that webhooks wait for. The webhook-worker removes them when they pass.

use chrono::{DateTime, Utc};
use database::{Error, prepared};
use diesel::sql_types::{Binary, Timestamptz};
use diesel::{PgConnection, RunQueryDsl as _};
use values::TaskId;

/// Makes the webhooks of a locked task that want the event `due` wait for a new due date, or for none. A date that is
/// not later than one of which a webhook was told already is no reason to tell it again.
pub(super) fn replace(
    connection: &mut PgConnection,
    task: TaskId,
    due_at: Option<DateTime<Utc>>,
) -> Result<(), Error> {
    prepared(DELETE)
        .bind::<Binary, _>(task)
        .execute(connection)?;
    if let Some(due_at) = due_at {
        prepared(INSERT)
            .bind::<Binary, _>(task)
            .bind::<Timestamptz, _>(due_at)
            .execute(connection)?;
    }
    Ok(())
}

const DELETE: &str = "DELETE FROM due_dates
    WHERE webhook_id = ANY(ARRAY(SELECT id FROM webhooks WHERE task_id = $1 AND on_due))";
const INSERT: &str = "INSERT INTO due_dates (webhook_id, due_at)
    SELECT id, $2 FROM webhooks WHERE task_id = $1 AND on_due AND (last_due IS NULL OR last_due < $2)";
