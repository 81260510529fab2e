//! The statements of task lists. They are raw SQL, because diesel's query builder can neither push a
//! limit into the branches of a union nor name a branch's sort key.

use database::Error;
use diesel::pg::Pg;
use diesel::prelude::*;
use diesel::query_builder::BoxedSqlQuery;
use diesel::sql_types::{BigInt, Binary, Bool, Text};
use listing::{Conditions, Direction, Sort, substring_pattern};

use crate::tasks::Task;
use crate::tasks::access::Actor;
use crate::tasks::list::{FilterBy, Role, Selection, SortBy, TaskListQuery};

/// A value that is bound to a statement.
enum Bind {
    Bytes(Vec<u8>),
    Text(String),
    Bool(bool),
    Number(i64),
}

/// The values of a statement; each may stand in it more than once.
#[derive(Default)]
struct Binds(Vec<Bind>);

impl Binds {
    /// Adds a value and returns how the statement names it.
    fn add(&mut self, bind: Bind) -> String {
        self.0.push(bind);
        format!("${}", self.0.len())
    }

    fn statement<'a>(self, sql: String) -> BoxedSqlQuery<'a, Pg, diesel::query_builder::SqlQuery> {
        let mut query = diesel::sql_query(sql).into_boxed();
        for bind in self.0 {
            query = match bind {
                Bind::Bytes(bytes) => query.bind::<Binary, _>(bytes),
                Bind::Text(text) => query.bind::<Text, _>(text),
                Bind::Bool(value) => query.bind::<Bool, _>(value),
                Bind::Number(number) => query.bind::<BigInt, _>(number),
            };
        }
        query
    }
}

/// The conditions that make a task concern somebody in a role, each of which an index serves.
fn branches(actor: &Actor, role: Option<Role>, binds: &mut Binds) -> Vec<String> {
    let wants = |wanted| role.is_none_or(|role| role == wanted);
    let mut branches = Vec::new();
    if role == Some(Role::Any) {
        branches.push("true".to_owned());
    }
    if let Some(user) = actor.user().filter(|_| wants(Role::Creator)) {
        let user = binds.add(Bind::Bytes(user.as_bytes().to_vec()));
        branches.push(format!("creator = {user}"));
    }
    for (wanted, key, secret) in [
        (Role::Approver, "approver_key", "approver_secret"),
        (Role::Requester, "requester_key", "requester_secret"),
    ] {
        if !wants(wanted) {
            continue;
        }
        if let Some(email) = actor.email_key() {
            let email = binds.add(Bind::Text(email));
            branches.push(format!("{key} = {email}"));
        }
        for fingerprint in actor.secrets() {
            let fingerprint = binds.add(Bind::Bytes(fingerprint.as_bytes().to_vec()));
            branches.push(format!("{secret} = {fingerprint}"));
        }
    }
    branches
}

/// What filters and pattern ask for, as the end of a `WHERE`.
fn restrictions(conditions: &Conditions<FilterBy>, binds: &mut Binds) -> String {
    let mut sql = String::new();
    for (field, value) in &conditions.filters {
        let value = match field {
            FilterBy::Public => Bind::Bool(value == "true"),
            FilterBy::Approver | FilterBy::Requester => {
                Bind::Text(value.trim().to_ascii_lowercase())
            }
            FilterBy::Status | FilterBy::Title => Bind::Text(value.clone()),
        };
        let value = binds.add(value);
        sql.push_str(&match field {
            FilterBy::Status => format!(" AND status = {value}"),
            FilterBy::Approver => format!(" AND approver_key = {value}"),
            FilterBy::Requester => format!(" AND requester_key = {value}"),
            FilterBy::Title => format!(" AND lower(title) = lower({value})"),
            FilterBy::Public => format!(" AND public = {value}"),
        });
    }
    if let Some(pattern) = &conditions.pattern {
        let pattern = binds.add(Bind::Text(substring_pattern(pattern)));
        sql.push_str(&format!(" AND lower(title) LIKE lower({pattern})"));
    }
    sql
}

/// The sort key and the order, in words that the indexes understand.
fn order(sort: Sort<SortBy>) -> (&'static str, String) {
    let key = match sort.by {
        SortBy::Created => "created",
        SortBy::DecisionBy => "decision_by",
        SortBy::Title => "lower(title)",
        SortBy::Status => "status",
        SortBy::Mtime => "mtime",
    };
    let direction = match sort.direction {
        Direction::Ascending => "ASC",
        Direction::Descending => "DESC",
    };
    // Only this one can be null; for the others the words would keep their index from being used.
    let nulls = match sort.by {
        SortBy::DecisionBy => " NULLS LAST",
        _ => "",
    };
    (key, format!("sort_key {direction}{nulls}, id {direction}"))
}

/// The tasks of one page and one more, if there is one more.
pub(crate) fn page(
    connection: &mut PgConnection,
    actor: &Actor,
    role: Option<Role>,
    list: &TaskListQuery,
) -> Result<Vec<Task>, Error> {
    let mut binds = Binds::default();
    let branches = branches(actor, role, &mut binds);
    if branches.is_empty() {
        return Ok(Vec::new());
    }
    let restrictions = restrictions(&list.conditions, &mut binds);
    let (key, order) = order(list.sort);
    let rows = list.paging.rows_to_fetch();
    let (limit, offset) = (
        binds.add(Bind::Number(rows)),
        binds.add(Bind::Number(list.paging.offset)),
    );
    // No branch contributes more than everything up to the end of the page.
    let reach = binds.add(Bind::Number(list.paging.offset.saturating_add(rows)));
    let branches = branches.into_iter().map(|condition| {
        format!(
            "(SELECT id, {key} AS sort_key FROM tasks WHERE {condition}{restrictions} ORDER BY {order} LIMIT {reach})"
        )
    });
    let union = branches.collect::<Vec<_>>().join(" UNION ");
    let sql = format!(
        "WITH page AS (SELECT id, sort_key FROM ({union}) AS concerned ORDER BY {order} LIMIT {limit} OFFSET {offset}) \
         SELECT tasks.* FROM page JOIN tasks USING (id) ORDER BY {order}"
    );
    Ok(binds.statement(sql).load(connection)?)
}

#[derive(QueryableByName)]
struct Count {
    #[diesel(sql_type = BigInt)]
    count: i64,
}

/// How many tasks there are.
pub(crate) fn count(
    connection: &mut PgConnection,
    actor: &Actor,
    selection: &Selection,
) -> Result<i64, Error> {
    let mut binds = Binds::default();
    let branches = branches(actor, selection.role, &mut binds).join(" OR ");
    if branches.is_empty() {
        return Ok(0);
    }
    let restrictions = restrictions(&selection.conditions, &mut binds);
    let sql = format!("SELECT count(*) AS count FROM tasks WHERE ({branches}){restrictions}");
    let count: Count = binds.statement(sql).get_result(connection)?;
    Ok(count.count)
}
