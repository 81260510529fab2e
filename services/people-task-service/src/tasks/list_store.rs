//! The statements of task lists. They are raw SQL, because diesel's query builder can neither push a
//! limit into the branches of a union nor name the sort key of a branch.

use database::{Error, LimitedRows, RowLimit, composed, limited_sql};
use diesel::pg::Pg;
use diesel::prelude::*;
use diesel::query_builder::{AstPass, QueryFragment};
use diesel::sql_types::{BigInt, Binary, Bool, Text};
use listing::{Conditions, Direction, Sort, substring_pattern};

use crate::tasks::access::Actor;
use crate::tasks::list_query::{Role, TaskFilter, TaskListQuery, TaskSelection, TaskSort};
use crate::tasks::secrets::PresentedSecret;
use crate::tasks::store::Task;
use crate::tasks::task_columns;

/// A value that is bound to a statement.
enum Bind {
    Bytes(Vec<u8>),
    Text(String),
    Bool(bool),
    Number(i64),
}

/// The values of a statement. The statement may use each more than once.
#[derive(Default)]
struct Binds(Vec<Bind>);

impl Binds {
    /// Adds a value and returns its placeholder.
    fn add(&mut self, bind: Bind) -> String {
        self.0.push(bind);
        format!("${}", self.0.len())
    }
}

impl QueryFragment<Pg> for Binds {
    fn walk_ast<'b>(&'b self, mut out: AstPass<'_, 'b, Pg>) -> QueryResult<()> {
        for bind in &self.0 {
            match bind {
                Bind::Bytes(bytes) => out.push_bind_param::<Binary, _>(bytes)?,
                Bind::Text(text) => out.push_bind_param::<Text, _>(text)?,
                Bind::Bool(value) => out.push_bind_param::<Bool, _>(value)?,
                Bind::Number(number) => out.push_bind_param::<BigInt, _>(number)?,
            }
        }
        Ok(())
    }
}

/// Whether the statements of lists like this one are few and usual enough for connections to keep them.
fn is_usual(actor: &Actor, conditions: &Conditions<TaskFilter>) -> bool {
    actor.secrets().is_empty() && conditions.pattern.is_none() && conditions.filters.len() <= 1
}

/// The conditions that make a task one of the actor's in a role. An index serves each of them.
fn branches(actor: &Actor, role: Option<Role>, binds: &mut Binds) -> Vec<String> {
    let includes = |wanted| role.is_none_or(|role| role == wanted);
    let mut branches = Vec::new();
    if role == Some(Role::Any) {
        branches.push("true".to_owned());
    }
    if let Some(user) = actor.user().filter(|_| includes(Role::Creator)) {
        let user = binds.add(Bind::Bytes(user.as_bytes().to_vec()));
        branches.push(format!("creator = {user}"));
    }
    for (wanted, key, secret) in [
        (Role::Approver, "approver_key", "approver_secret"),
        (Role::Requester, "requester_key", "requester_secret"),
    ] {
        if !includes(wanted) {
            continue;
        }
        if let Some(email) = actor.normalized_email() {
            let email = binds.add(Bind::Text(email));
            branches.push(format!("{key} = {email}"));
        }
        for presented in actor.secrets() {
            branches.extend(secret_branches(secret, presented, binds));
        }
    }
    branches
}

/// A secret names its task, unless an earlier version generated it.
fn secret_branches(column: &str, secret: &PresentedSecret, binds: &mut Binds) -> Vec<String> {
    let fingerprint = binds.add(Bind::Bytes(secret.fingerprint.as_bytes().to_vec()));
    let mut branches = vec![format!("{column} = {fingerprint} AND has_random_secrets")];
    if let Some(task) = secret.task {
        let task = binds.add(Bind::Bytes(task.as_bytes().to_vec()));
        branches.push(format!("tasks.id = {task} AND {column} = {fingerprint}"));
    }
    branches
}

/// Filters and pattern, as the end of a `WHERE` clause.
fn restrictions(conditions: &Conditions<TaskFilter>, binds: &mut Binds) -> String {
    let mut sql = String::new();
    for (field, value) in &conditions.filters {
        let value = match field {
            TaskFilter::Public => Bind::Bool(value == "true"),
            TaskFilter::Approver | TaskFilter::Requester => {
                Bind::Text(value.trim().to_ascii_lowercase())
            }
            TaskFilter::Status | TaskFilter::Title => Bind::Text(value.clone()),
        };
        let value = binds.add(value);
        sql.push_str(&match field {
            TaskFilter::Status => format!(" AND status = {value}"),
            TaskFilter::Approver => format!(" AND approver_key = {value}"),
            TaskFilter::Requester => format!(" AND requester_key = {value}"),
            TaskFilter::Title => format!(" AND lower(title) = lower({value})"),
            TaskFilter::Public => format!(" AND public = {value}"),
        });
    }
    if let Some(pattern) = &conditions.pattern {
        let pattern = binds.add(Bind::Text(substring_pattern(pattern)));
        sql.push_str(&format!(" AND lower(title) LIKE lower({pattern})"));
    }
    sql
}

/// The sort key and the order, in the form that the indexes have.
fn order(sort: Sort<TaskSort>) -> (&'static str, String) {
    let key = match sort.by {
        TaskSort::Created => "created",
        TaskSort::DecisionBy => "decision_by",
        TaskSort::Title => "lower(title)",
        TaskSort::Status => "status",
        TaskSort::Mtime => "mtime",
    };
    let direction = match sort.direction {
        Direction::Ascending => "ASC",
        Direction::Descending => "DESC",
    };
    // Only this column can be null. For the others `NULLS LAST` would rule out their index.
    let nulls = match sort.by {
        TaskSort::DecisionBy => " NULLS LAST",
        _ => "",
    };
    (key, format!("sort_key {direction}{nulls}, id {direction}"))
}

/// The statements of the branches, each of which returns at most the rows up to the end of the page.
fn branch_statements(
    branches: &[String],
    restrictions: &str,
    query: &TaskListQuery,
    page_end: &str,
) -> Vec<String> {
    let (key, order) = order(query.sort);
    let by_state = matches!(query.sort.by, TaskSort::Status | TaskSort::Mtime);
    let filters = &query.conditions.filters;
    let only_state = query.conditions.pattern.is_none()
        && filters
            .iter()
            .all(|(field, _)| *field == TaskFilter::Status);
    let statement = |condition: &str, order: &str| {
        let (id, tables) = if by_state && only_state && condition == "true" {
            // The narrow table alone is read fastest.
            ("task_id", "task_states")
        } else if by_state || filters_status(&query.conditions) {
            ("tasks.id", TASKS_AND_STATES)
        } else {
            ("tasks.id", "tasks")
        };
        format!(
            "(SELECT {id} AS id, {key} AS sort_key FROM {tables} WHERE {condition}{restrictions} \
             ORDER BY {order} LIMIT {page_end})"
        )
    };
    if query.sort.by != TaskSort::DecisionBy {
        let statements = branches
            .iter()
            .map(|condition| statement(condition, &order));
        return statements.collect();
    }
    // The index has only tasks with this time. The others follow them, in the order of their ids.
    let by_id = order.split_once(", ").map_or("id", |(_, by_id)| by_id);
    let by_time = order.replace(" NULLS LAST", "");
    let statements = branches.iter().flat_map(|condition| {
        [
            statement(
                &format!("{condition} AND decision_by IS NOT NULL"),
                &by_time,
            ),
            statement(&format!("{condition} AND decision_by IS NULL"), by_id),
        ]
    });
    statements.collect()
}

const TASKS_AND_STATES: &str = "tasks JOIN task_states ON task_states.task_id = tasks.id";

/// The size of a task in bytes, approximately.
const SIZE: &str = "octet_length(title) + octet_length(description) + octet_length(approver) \
                    + octet_length(requester) + 512";

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
    let mut binds = Binds::default();
    let branches = branches(actor, role, &mut binds);
    if branches.is_empty() {
        return Ok(LimitedRows::from_iter([]));
    }
    let restrictions = restrictions(&query.conditions, &mut binds);
    let (_, order) = order(query.sort);
    let rows = query.paging.rows_to_fetch();
    let (fetched, offset) = (
        binds.add(Bind::Number(rows)),
        binds.add(Bind::Number(query.paging.offset)),
    );
    // No branch contributes more rows than there are up to the end of the page.
    let page_end = binds.add(Bind::Number(query.paging.offset.saturating_add(rows)));
    let union = branch_statements(&branches, &restrictions, query, &page_end).join(" UNION ");
    let page = format!(
        "WITH page AS (SELECT id, sort_key FROM ({union}) AS selected ORDER BY {order} LIMIT {fetched} OFFSET {offset}) \
         SELECT {columns}, page.sort_key FROM page JOIN tasks USING (id) \
         JOIN task_states ON task_states.task_id = page.id ORDER BY {order}",
        columns = task_columns!(),
    );
    let (rows, bytes) = (
        binds.add(Bind::Number(limit.rows)),
        binds.add(Bind::Number(limit.bytes)),
    );
    let sql = limited_sql(&page, SIZE, &rows, &bytes);
    let statement = composed(sql, binds, is_usual(actor, &query.conditions));
    let tasks: Vec<FoundTask> = statement.load(connection)?;
    let tasks = tasks.into_iter().map(|found| (found.task, found.found));
    Ok(tasks.collect())
}

fn filters_status(conditions: &Conditions<TaskFilter>) -> bool {
    let mut filters = conditions.filters.iter();
    filters.any(|(field, _)| *field == TaskFilter::Status)
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
    selection: &TaskSelection,
) -> Result<i64, Error> {
    let mut binds = Binds::default();
    let branches = branches(actor, selection.role, &mut binds).join(" OR ");
    if branches.is_empty() {
        return Ok(0);
    }
    let restrictions = restrictions(&selection.conditions, &mut binds);
    let tables = if filters_status(&selection.conditions) {
        TASKS_AND_STATES
    } else {
        "tasks"
    };
    let sql = format!("SELECT count(*) AS count FROM {tables} WHERE ({branches}){restrictions}");
    // With a filter, the best plan depends on the user. Reading the rows takes much longer than planning.
    let is_cached =
        selection.conditions.filters.is_empty() && is_usual(actor, &selection.conditions);
    let statement = composed(sql, binds, is_cached);
    let count: Count = statement.get_result(connection)?;
    Ok(count.count)
}
