use database::{Connection, Database};
use values::TaskId;

use crate::tasks::access::{Actor, Permission, Relations};
use crate::tasks::error::TaskError;
use crate::tasks::store::{self, Task};

/// Finds a task for an actor who needs a permission on it: the only way to a task without locking it.
///
/// # Errors
/// [`TaskError::NotFound`], [`TaskError::Forbidden`].
pub(crate) fn find_permitted(
    connection: &mut Connection,
    actor: &Actor,
    id: TaskId,
    permission: Permission,
) -> Result<(Task, Relations), TaskError> {
    let task = store::find(connection, id)?.ok_or(TaskError::NotFound)?;
    let relations = actor.relations_to(&task);
    relations.check(permission)?;
    Ok((task, relations))
}

/// Reads a task.
///
/// # Errors
/// [`TaskError::NotFound`].
#[tracing::instrument(skip_all, fields(task.id = %id))]
pub(crate) async fn read(
    database: &Database,
    actor: Actor,
    id: TaskId,
) -> Result<(Task, Relations), TaskError> {
    database
        .run(move |connection| find_permitted(connection, &actor, id, Permission::Read))
        .await
}
