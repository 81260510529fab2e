use database::{BatchLimits, Connection, Database, Lookups};
use listing::{Page, PageLimits};
use values::TaskId;

use crate::error::TaskError;
use crate::status::TaskStatus;
use crate::tasks::access::{Actor, Permission, Relations};
use crate::tasks::list_query::{
    MAX_SORTED_OFFSET, MAX_SORTED_TASKS, Role, TaskConditions, TaskListQuery, TaskSort,
};
use crate::tasks::projection::{FieldSelection, TaskField};
use crate::tasks::requests::Precondition;
use crate::tasks::responses::TaskResponse;
use crate::tasks::store::{self, Task};

/// Finds tasks by their identifiers, without locking them.
pub(crate) type TaskLookups = Lookups<TaskId, Task>;

pub(crate) fn task_lookups(database: Database) -> TaskLookups {
    database::lookups(database, BatchLimits::SERVICE, store::find_all)
}

/// Finds a task for an actor who needs a permission on it: with [`read`], the only way to a task without locking it.
pub(crate) fn find_permitted(
    connection: &mut Connection,
    actor: &Actor,
    id: TaskId,
    permission: Permission,
) -> Result<(Task, Relations), TaskError> {
    permitted(store::find(connection, id)?, actor, permission)
}

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
    let task = task.ok_or(TaskError::NotFound("task"))?;
    let relations = actor.relations_to(&task);
    relations.check(permission)?;
    Ok((task, relations))
}

impl Task {
    /// Whether the task is undecided, and of a version that the caller means.
    ///
    /// # Errors
    /// [`TaskError::AlreadyResolved`], which comes first, and [`TaskError::Changed`].
    pub(crate) fn check_pending(&self, precondition: &Precondition) -> Result<(), TaskError> {
        if self.status != TaskStatus::Pending {
            Err(TaskError::AlreadyResolved(self.status))
        } else if !precondition.holds_for(self.content_version) {
            let selection = FieldSelection::new(false).with(TaskField::Version);
            let task = TaskResponse::new(self.clone(), Relations::default(), &selection);
            let task = serde_json::to_value(task).unwrap_or_default();
            Err(TaskError::Changed(task))
        } else {
            Ok(())
        }
    }
}

pub(crate) fn check_role(actor: &Actor, role: Option<Role>) -> Result<(), TaskError> {
    if role == Some(Role::Any) && !actor.is_admin() {
        return Err(TaskError::NotAdmin);
    }
    Ok(())
}

/// One page of an actor's tasks, each with the actor's relations to it.
///
/// # Errors
/// [`TaskError::NotAdmin`], and [`TaskError::OffsetTooHigh`] if too many tasks would have to be sorted.
pub(crate) fn list(
    connection: &mut Connection,
    actor: &Actor,
    role: Option<Role>,
    query: &TaskListQuery,
    limits: PageLimits,
) -> Result<Page<(Task, Relations)>, TaskError> {
    check_role(actor, role)?;
    let paging = query.paging;
    // Only `created` has an index for each role. For others, very many tasks may have to be sorted.
    if query.sort.by != TaskSort::Created && paging.offset > MAX_SORTED_OFFSET {
        let tasks = store::list::count(connection, actor, role, &query.conditions)?;
        if tasks <= paging.offset {
            return Ok(paging.page(Vec::new(), 0));
        } else if tasks > MAX_SORTED_TASKS {
            return Err(TaskError::OffsetTooHigh(
                MAX_SORTED_OFFSET,
                MAX_SORTED_TASKS,
            ));
        }
    }
    let page = store::list::load_page(connection, actor, role, query, limits)?;
    Ok(page.map(|task| {
        let relations = actor.relations_to(&task);
        (task, relations)
    }))
}

/// How many tasks a list without a limit would have.
pub(crate) fn count(
    connection: &mut Connection,
    actor: &Actor,
    role: Option<Role>,
    conditions: &TaskConditions,
) -> Result<i64, TaskError> {
    check_role(actor, role)?;
    Ok(store::list::count(connection, actor, role, conditions)?)
}
