//! Lists and counts of tasks. They are raw SQL, because diesel's query builder can neither push a limit into the branches
//! of a union nor name the sort key of a branch.
//!
//! The pages that people open all the time have indexes of exactly their tasks. Others read the narrow table
//! `task_states`, which takes about 0.2 seconds for a million tasks, unless a shorter path leads to theirs.

mod selection;
#[cfg(test)]
mod tests;

use database::Error;
use diesel::PgConnection;
use listing::{AccessPaths, Few, First, Order, Page, PageLimits, Sort, Source, Table};

use self::selection::{Selection, on_state};
use crate::status::shown_status;
use crate::tasks::access::Actor;
use crate::tasks::list_query::{Role, TaskConditions, TaskListQuery, TaskSort};
use crate::tasks::store::Task;
use crate::tasks::task_columns;

/// As many tasks are few: their states are read one after the other.
const FEW: i64 = 10_000;
/// How many of the first tasks are looked through at most.
const FIRST: i64 = 10_000;
/// The end of a page that may be among them.
const MAX_END: i64 = 2_000;

const TABLE: Table = Table {
    columns: task_columns!(),
    joins: "JOIN tasks USING (id) JOIN task_states ON task_states.task_id = page.id",
    size: "octet_length(title) + octet_length(description) + octet_length(approver) \
           + octet_length(requester) + coalesce(octet_length(comment), 0) \
           + coalesce(octet_length(metadata), 0) + 512",
};

pub(crate) fn load_page(
    connection: &mut PgConnection,
    actor: &Actor,
    role: Option<Role>,
    query: &TaskListQuery,
    limits: PageLimits,
) -> Result<Page<Task>, Error> {
    let selection = Selection::new(actor, role, &query.conditions);
    if selection.is_empty() {
        return Ok(limits.paging.page(Vec::new(), 0));
    }
    access_paths(selection, query.sort).load(connection, limits)
}

pub(crate) fn count(
    connection: &mut PgConnection,
    actor: &Actor,
    role: Option<Role>,
    conditions: &TaskConditions,
) -> Result<i64, Error> {
    let selection = Selection::new(actor, role, conditions);
    if selection.is_empty() {
        return Ok(0);
    }
    let indexed = if selection.is_unrestricted() {
        Some(format!("tasks WHERE {}", selection.condition_on_tasks()))
    } else if selection.only_pending {
        Some(format!("task_states WHERE {}", selection.condition()))
    } else {
        None
    };
    if let Some(rows) = indexed {
        return listing::count(connection, &rows, selection.binds, selection.is_usual);
    }
    access_paths(selection, Sort::descending(TaskSort::Created)).count(connection)
}

/// The column of `task_states` that a list is sorted by, and what `tasks` has an index of, if there is one.
fn keys(sort: TaskSort) -> (&'static str, Option<&'static str>) {
    match sort {
        TaskSort::Created => ("created", Some("created")),
        TaskSort::DecisionBy => ("decision_by", Some("decision_by")),
        TaskSort::Title => ("title_key", Some("lower(title)")),
        TaskSort::Status => (shown_status!(), None),
        TaskSort::Mtime => ("mtime", None),
    }
}

fn tasks(condition: &str, key: &'static str) -> Source {
    Source {
        rows: format!("tasks WHERE {condition}"),
        id: "id",
        key,
    }
}

fn states(condition: &str, key: &'static str) -> Source {
    Source {
        rows: format!("task_states WHERE {condition}"),
        id: "task_id",
        key,
    }
}

fn access_paths(selection: Selection, sort: Sort<TaskSort>) -> AccessPaths {
    let order = Order {
        direction: sort.direction,
        nullable: sort.by == TaskSort::DecisionBy,
    };
    AccessPaths {
        table: &TABLE,
        order,
        ordered: ordered(&selection, sort.by),
        is_cached: selection.is_usual,
        few: Few::Among(selection.supersets()),
        max_few: FEW,
        first: first(&selection, sort.by, order),
        all: states(&selection.condition(), keys(sort.by).0),
        binds: selection.binds,
    }
}

/// Indexes that have only the selected tasks, in their order.
fn ordered(selection: &Selection, sort: TaskSort) -> Vec<Source> {
    let (key, _) = keys(sort);
    let own = selection.own.iter();
    if sort != TaskSort::Created {
        Vec::new()
    } else if selection.is_unrestricted() && selection.is_any {
        vec![tasks("true", key)]
    } else if selection.is_unrestricted() {
        own.map(|own| tasks(&own.condition, key)).collect()
    } else if selection.only_pending && !selection.is_any {
        let pending = own.map(|own| format!("{} AND status = 'pending'", on_state(own)));
        pending.map(|pending| states(&pending, key)).collect()
    } else {
        Vec::new()
    }
}

/// The first tasks in an order, of the actor's only role or of all.
fn first(selection: &Selection, sort: TaskSort, order: Order) -> Option<First> {
    let (_, index) = keys(sort);
    let index = index?;
    let source = match (sort, selection.own.as_slice()) {
        (TaskSort::Created, [own]) => tasks(&own.condition, index),
        // The condition of the index.
        (TaskSort::DecisionBy, _) => tasks("decision_by IS NOT NULL", index),
        _ => tasks("true", index),
    };
    Some(First {
        source,
        order: Order {
            nullable: false,
            ..order
        },
        rows: FIRST,
        max_end: MAX_END,
        // `OFFSET 0` keeps Postgres from reading all states instead of one after the other.
        matching: format!(
            "CROSS JOIN LATERAL (SELECT * FROM task_states WHERE task_id = first.id OFFSET 0) AS states \
             WHERE {}",
            selection.condition()
        ),
    })
}
