//! The ways to the tasks of a page. Each is a statement that selects `id` and `sort_key` of the tasks up to the end of
//! the page.

use super::order::Order;
use super::selection::Selection;

/// How many tasks a walk passes at most.
const WALK: usize = 10_000;

/// Reads an index that has only the selected tasks, in their order. `None` if there is none.
pub(super) fn in_index_order(
    selection: &Selection,
    order: Order,
    page_end: &str,
) -> Option<String> {
    if !order.is_by_created() {
        return None;
    }
    let ordered = |rows: &str, id: &str| {
        let order = order.by("created", "id");
        format!("(SELECT {id}, created AS sort_key FROM {rows} ORDER BY {order} LIMIT {page_end})")
    };
    let branches = selection.branches.iter();
    let statements: Vec<_> = if selection.is_unrestricted() && selection.is_any {
        vec![ordered("tasks", "id")]
    } else if selection.is_unrestricted() {
        let tasks = branches.map(|branch| format!("tasks WHERE {}", branch.condition()));
        tasks.map(|rows| ordered(&rows, "id")).collect()
    } else if selection.only_pending && !selection.is_any {
        let states =
            branches.map(|b| format!("task_states WHERE {} AND status = 'pending'", b.in_states));
        states.map(|rows| ordered(&rows, "task_id AS id")).collect()
    } else {
        return None;
    };
    Some(statements.join(" UNION "))
}

/// Reads few tasks that contain the selected ones.
pub(super) fn among_few(
    selection: &Selection,
    superset: &str,
    order: Order,
    page_end: &str,
) -> String {
    let few = format!("task_id = ANY(ARRAY({superset})) AND ");
    select_states(&few, selection, order, page_end)
}

/// Reads all rows of the narrow table.
pub(super) fn scan(selection: &Selection, order: Order, page_end: &str) -> String {
    select_states("", selection, order, page_end)
}

fn select_states(few: &str, selection: &Selection, order: Order, page_end: &str) -> String {
    format!(
        "SELECT task_id AS id, {key} AS sort_key FROM task_states WHERE {few}{condition} \
         ORDER BY {order} LIMIT {page_end}",
        key = order.key(),
        condition = selection.condition(),
        order = order.by(order.key(), "task_id"),
    )
}

/// Reads the first tasks in this order, of the actor's only role or of all. The page is right if that is enough to fill
/// it. `None` if there is no index of the order.
pub(super) fn walk(selection: &Selection, order: Order, page_end: &str) -> Option<String> {
    let (index, indexed) = order.index()?;
    let rows = match selection.branches.as_slice() {
        [branch] if order.is_by_created() => format!("tasks WHERE {}", branch.condition()),
        _ => format!("tasks{indexed}"),
    };
    // `OFFSET 0` keeps Postgres from reading all states instead of one after the other.
    Some(format!(
        "SELECT walked.id, states.{key} AS sort_key FROM (\
             SELECT id, {index} AS walk_key FROM {rows} ORDER BY {walked} LIMIT {WALK}\
         ) AS walked CROSS JOIN LATERAL (\
             SELECT * FROM task_states WHERE task_id = walked.id OFFSET 0\
         ) AS states WHERE {condition} ORDER BY {order} LIMIT {page_end}",
        key = order.key(),
        walked = order.by_present(index, "id"),
        condition = selection.condition(),
        order = order.by_present("walk_key", "walked.id"),
    ))
}
