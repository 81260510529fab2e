use database::{BatchOutcomes, Connection, Error, Round, transaction};
use values::TaskId;

use crate::error::TaskError;
use crate::tasks::store;

/// Changes tasks in a batch by `change`, which waits for no lock and returns `None` for what it did not write because the task
/// has changed, or is changing: [why](../../../../docs/decisions/batches-written-by-version.md).
///
/// A repeat runs under the locks of the tasks, so nothing changes between its judgement and what it writes. What it still
/// does not write was allowed, but its user was erased.
pub(crate) fn change_in_round<Response>(
    connection: &mut Connection,
    round: Round,
    tasks: &[TaskId],
    change: impl FnOnce(&mut Connection) -> Result<BatchOutcomes<Response, TaskError>, Error>,
) -> Result<BatchOutcomes<Response, TaskError>, Error> {
    if round == Round::First {
        return change(connection);
    }
    let outcomes = transaction(connection, |connection| {
        store::lock_all(connection, tasks)?;
        change(connection)
    })?;
    let outcomes = outcomes.into_iter();
    let outcomes = outcomes.map(|outcome| outcome.or(Some(Err(TaskError::CallerErased))));
    Ok(outcomes.collect())
}
