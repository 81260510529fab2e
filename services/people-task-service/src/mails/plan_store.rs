//! The mails of a task that is created or edited.

use database::{Connection, Error, prepared};
use diesel::dsl::exists;
use diesel::prelude::*;
use diesel::sql_types::{Array, Binary, Bool, Double, Nullable};
use values::TaskId;

use crate::mailing::Seed;
use crate::schema::mailed_tasks;

/// A query for the reminders of a task that are still to come. `$reminders` is the parameter with the seconds before
/// the due date, and `decision_by` the column with that date.
macro_rules! planned_reminders {
    ($reminders:literal) => {
        concat!(
            "SELECT CASE before WHEN 0 THEN 'due' ELSE 'reminder' END AS kind,
            decision_by - make_interval(secs => before) AS due_at
            FROM unnest(",
            $reminders,
            ") AS before WHERE decision_by - make_interval(secs => before) > now()"
        )
    };
}

pub(crate) use planned_reminders;

/// What an edit changes about the mails of a task.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Replan {
    /// The seed of a new approver's secret.
    pub(crate) approver_seed: Option<Seed>,
    /// The seed of a new requester's secret.
    pub(crate) requester_seed: Option<Seed>,
    pub(crate) new_due_date: bool,
}

pub(crate) fn is_mailed(connection: &mut Connection, task: TaskId) -> Result<bool, Error> {
    let row = mailed_tasks::table.find(task);
    Ok(diesel::select(exists(row)).get_result(connection)?)
}

/// Changes the mails of an edited task whose row is locked. A new approver is asked, and a new approver or due date makes
/// other reminders.
pub(crate) fn replan(
    connection: &mut Connection,
    task: TaskId,
    replan: &Replan,
    reminders: &[f64],
) -> Result<(), Error> {
    let seed = |seed: &Option<Seed>| seed.as_ref().map(|seed| seed.as_bytes().to_vec());
    let asks = replan.approver_seed.is_some();
    if asks || replan.requester_seed.is_some() {
        prepared(UPDATE_SEEDS)
            .bind::<Binary, _>(task)
            .bind::<Nullable<Binary>, _>(seed(&replan.approver_seed))
            .bind::<Nullable<Binary>, _>(seed(&replan.requester_seed))
            .execute(connection)?;
    }
    if asks || replan.new_due_date {
        prepared(DELETE)
            .bind::<Binary, _>(task)
            .bind::<Bool, _>(asks)
            .execute(connection)?;
        prepared(INSERT)
            .bind::<Binary, _>(task)
            .bind::<Bool, _>(asks)
            .bind::<Array<Double>, _>(reminders)
            .execute(connection)?;
    }
    Ok(())
}

const UPDATE_SEEDS: &str = "UPDATE mailed_tasks
    SET approver_seed = coalesce($2, approver_seed), requester_seed = coalesce($3, requester_seed) WHERE task_id = $1";
const DELETE: &str =
    "DELETE FROM task_mails WHERE task_id = $1 AND (kind IN ('reminder', 'due') OR $2)";
const INSERT: &str = concat!(
    "INSERT INTO task_mails (id, task_id, creator, kind, recipient, due_at, next_attempt)
    SELECT new_id(), id, creator, kind, mail_recipient(approver_key), due_at, due_at
    FROM tasks CROSS JOIN LATERAL (
        SELECT 'asked' AS kind, now() AS due_at WHERE $2 UNION ALL ",
    planned_reminders!("$3"),
    "
    ) AS planned WHERE id = $1"
);
