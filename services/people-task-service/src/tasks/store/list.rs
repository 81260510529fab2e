//! The statements of task lists. They are raw SQL, because diesel's query builder can neither push a limit into the
//! branches of a union nor name the sort key of a branch.
//!
//! No statement depends on the planner's estimates to be fast. The pages that people open all the time have indexes
//! that select them. For all others it is first found out whether an index leads to few tasks; if not, the narrow table
//! `task_states` is read, which takes about 0.2 seconds for a million tasks.

mod binds;
mod order;
mod selection;
#[cfg(test)]
mod tests;
mod ways;

use database::{Error, LimitedRows, RowLimit, composed, limited_sql};
use diesel::prelude::*;
use diesel::sql_types::{Array, BigInt};
use listing::Paging;

use self::binds::Bind;
use self::order::Order;
use self::selection::{Branch, Selection};
use crate::tasks::access::Actor;
use crate::tasks::list_query::{Role, TaskConditions, TaskListQuery};
use crate::tasks::store::Task;
use crate::tasks::task_columns;

/// As many tasks are few: their states are read one after the other.
const FEW: usize = 10_000;
/// The end of a page that a walk may fill.
const WALKED_PAGES: i64 = 2_000;

/// The size of a task in bytes, approximately.
const SIZE: &str = "octet_length(title) + octet_length(description) + octet_length(approver) \
                    + octet_length(requester) + coalesce(octet_length(comment), 0) + 512";

#[derive(QueryableByName)]
struct FoundTask {
    #[diesel(embed)]
    task: Task,
    #[diesel(sql_type = BigInt)]
    found: i64,
}

/// Loads the tasks of one page.
pub(crate) fn load_page(
    connection: &mut PgConnection,
    actor: &Actor,
    role: Option<Role>,
    query: &TaskListQuery,
    limit: RowLimit,
) -> Result<LimitedRows<Task>, Error> {
    let mut selection = Selection::new(actor, role, &query.conditions);
    if selection.is_empty() {
        return Ok(LimitedRows::from_iter([]));
    }
    let page = PageStatement::new(&mut selection, query.sort.into(), query.paging, limit);
    let (order, end) = (page.order, page.end.as_str());
    if let Some(way) = ways::in_index_order(&selection, order, end) {
        return page.load(connection, &selection, &way, selection.is_usual);
    }
    if let Some(superset) = find_small_superset(connection, &selection)? {
        let way = ways::among_few(&selection, &superset, order, end);
        return page.load(connection, &selection, &way, false);
    }
    let wanted = query.paging.rows_to_fetch();
    if query.paging.offset.saturating_add(wanted) <= WALKED_PAGES
        && let Some(way) = ways::walk(&selection, order, end)
    {
        let walked = page.load(connection, &selection, &way, false)?;
        if walked.found == wanted {
            return Ok(walked);
        }
    }
    let way = ways::scan(&selection, order, end);
    page.load(connection, &selection, &way, false)
}

/// The statement that loads a page, without the way to its tasks.
struct PageStatement {
    order: Order,
    /// The placeholder of the number of tasks up to the end of the page, of which a way selects no more.
    end: String,
    rows: String,
    offset: String,
    limit: [String; 2],
}

impl PageStatement {
    fn new(selection: &mut Selection, order: Order, paging: Paging, limit: RowLimit) -> Self {
        let rows = paging.rows_to_fetch();
        let mut number = |number| selection.binds.add(Bind::Number(number));
        Self {
            order,
            end: number(paging.offset.saturating_add(rows)),
            rows: number(rows),
            offset: number(paging.offset),
            limit: [number(limit.rows), number(limit.bytes)],
        }
    }

    fn load(
        &self,
        connection: &mut PgConnection,
        selection: &Selection,
        way: &str,
        is_cached: bool,
    ) -> Result<LimitedRows<Task>, Error> {
        let page = format!(
            "WITH page AS (SELECT id, sort_key FROM ({way}) AS selected ORDER BY {order} LIMIT {rows} OFFSET {offset}) \
             SELECT {columns}, page.sort_key FROM page JOIN tasks USING (id) \
             JOIN task_states ON task_states.task_id = page.id ORDER BY {order}",
            order = self.order.by("sort_key", "id"),
            rows = self.rows,
            offset = self.offset,
            columns = task_columns!(),
        );
        let [rows, bytes] = &self.limit;
        let sql = limited_sql(&page, SIZE, rows, bytes);
        let statement = composed(sql, selection.binds.clone(), is_cached);
        let tasks: Vec<FoundTask> = statement.load(connection)?;
        let tasks = tasks.into_iter().map(|found| (found.task, found.found));
        Ok(tasks.collect())
    }
}

#[derive(QueryableByName)]
struct Sizes {
    #[diesel(sql_type = Array<BigInt>)]
    sizes: Vec<i64>,
}

/// Finds few tasks that contain the selected ones, as a statement that selects their identifiers.
fn find_small_superset(
    connection: &mut PgConnection,
    selection: &Selection,
) -> Result<Option<String>, Error> {
    let counts = selection.supersets(FEW + 1).into_iter();
    let counts: Vec<_> = counts
        .map(|superset| {
            format!(
                "(SELECT count(*) FROM (SELECT FROM ({superset}) AS tasks LIMIT {FEW} + 1) AS few)"
            )
        })
        .collect();
    let sql = format!("SELECT ARRAY[{}]::bigint[] AS sizes", counts.join(", "));
    let found: Sizes = composed(sql, selection.binds.clone(), false).get_result(connection)?;
    // Tasks that are created meanwhile may exceed the limit.
    let supersets = selection.supersets(FEW * 2).into_iter();
    let smallest = supersets.zip(found.sizes).min_by_key(|(_, size)| *size);
    Ok(smallest
        .filter(|(_, size)| usize::try_from(*size).is_ok_and(|size| size <= FEW))
        .map(|(superset, _)| superset))
}

#[derive(QueryableByName)]
struct Count {
    #[diesel(sql_type = BigInt)]
    count: i64,
}

/// Counts the tasks of a selection.
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
    let is_indexed = selection.is_unrestricted() || selection.only_pending;
    let rows = if selection.is_unrestricted() {
        match selection.branches.as_slice() {
            [] => "tasks".to_owned(),
            // Only one condition is read from an index alone.
            [branch] => format!("tasks WHERE {}", branch.counted),
            branches => {
                let branches: Vec<_> = branches.iter().map(Branch::condition).collect();
                format!("tasks WHERE ({})", branches.join(") OR ("))
            }
        }
    } else {
        let few = if is_indexed {
            None
        } else {
            find_small_superset(connection, &selection)?
        };
        let few = few.map(|superset| format!("task_id = ANY(ARRAY({superset})) AND "));
        format!(
            "task_states WHERE {}{}",
            few.unwrap_or_default(),
            selection.condition()
        )
    };
    let sql = format!("SELECT count(*) AS count FROM {rows}");
    let is_cached = is_indexed && selection.is_usual;
    let statement = composed(sql, selection.binds, is_cached);
    let count: Count = statement.get_result(connection)?;
    Ok(count.count)
}
