use database::{BatchLimits, Connection, Database, Lookups};
use values::TaskId;

use crate::tasks::access::{Actor, Permission, Relations};
use crate::tasks::error::TaskError;
use crate::tasks::store::{self, Task};

/// Finds tasks by their identifiers, without locking them.
pub(crate) type TaskLookups = Lookups<TaskId, Task>;

/// Starts [`TaskLookups`].
pub(crate) fn task_lookups(database: Database, limits: BatchLimits) -> TaskLookups {
    database::lookups(database, limits, store::find_all)
}

/// Finds a task for an actor who needs a permission on it: with [`read`], the only way to a task without locking it.
///
/// # Errors
/// [`TaskError::NotFound`], [`TaskError::Forbidden`].
pub(crate) fn find_permitted(
    connection: &mut Connection,
    actor: &Actor,
    id: TaskId,
    permission: Permission,
) -> Result<(Task, Relations), TaskError> {
    permitted(store::find(connection, id)?, actor, permission)
}

/// Reads a task.
///
/// # Errors
/// [`TaskError::NotFound`].
#[tracing::instrument(skip_all, fields(task.id = %id))]
pub(crate) async fn read(
    lookups: &TaskLookups,
    actor: Actor,
    id: TaskId,
) -> Result<(Task, Relations), TaskError> {
    permitted(lookups.run(id).await?, &actor, Permission::Read)
}

fn permitted(
    task: Option<Task>,
    actor: &Actor,
    permission: Permission,
) -> Result<(Task, Relations), TaskError> {
    let task = task.ok_or(TaskError::NotFound)?;
    let relations = actor.relations_to(&task);
    relations.check(permission)?;
    Ok((task, relations))
}
