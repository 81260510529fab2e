use database::Database;
use listing::{Page, PageLimits};

use crate::tasks::access::{Actor, Relations};
use crate::tasks::error::TaskError;
use crate::tasks::list_query::{
    MAX_SORTED_TASKS, Role, TaskListQuery, TaskSelection, may_sort_many,
};
use crate::tasks::store::{self, Task};

/// Checks that an actor may list tasks by this role.
///
/// # Errors
/// [`TaskError::NotAdmin`].
pub(crate) fn check_role(actor: &Actor, role: Option<Role>) -> Result<(), TaskError> {
    if role == Some(Role::Any) && !actor.is_admin() {
        return Err(TaskError::NotAdmin);
    }
    Ok(())
}

/// One page of an actor's tasks of at most `bytes`, each with the actor's relations to it.
///
/// # Errors
/// [`TaskError::NotAdmin`], and [`TaskError::OffsetTooHigh`] if too many tasks would have to be sorted.
pub(crate) async fn list(
    database: Database,
    actor: Actor,
    role: Option<Role>,
    query: TaskListQuery,
    bytes: usize,
) -> Result<Page<(Task, Relations)>, TaskError> {
    check_role(&actor, role)?;
    let paging = query.paging;
    let load = move |connection: &mut _| {
        if may_sort_many(&query) {
            let tasks = store::list::count(connection, &actor, role, &query.conditions)?;
            if tasks <= paging.offset {
                return Ok(paging.page(Vec::new(), 0));
            } else if tasks > MAX_SORTED_TASKS {
                return Err(TaskError::OffsetTooHigh);
            }
        }
        let limits = PageLimits { paging, bytes };
        let page = store::list::load_page(connection, &actor, role, &query, limits)?;
        Ok(page.map(|task| {
            let relations = actor.relations_to(&task);
            (task, relations)
        }))
    };
    database.run(load).await
}

/// How many tasks a list without a limit would have.
///
/// # Errors
/// [`TaskError::NotAdmin`].
pub(crate) async fn count(
    database: Database,
    actor: Actor,
    selection: TaskSelection,
) -> Result<i64, TaskError> {
    check_role(&actor, selection.role)?;
    let count = move |connection: &mut _| {
        let TaskSelection { role, conditions } = &selection;
        store::list::count(connection, &actor, *role, conditions).map_err(TaskError::from)
    };
    database.run(count).await
}
