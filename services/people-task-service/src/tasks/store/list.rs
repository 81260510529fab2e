//! Lists and counts of tasks. They are raw SQL, because diesel's query builder can neither push a limit into the branches
//! of a union nor name the sort key of a branch.
//!
//! The pages that people open all the time have indexes of exactly their tasks. Others read the narrow table
//! `task_states`, which takes about 0.2 seconds for a million tasks, unless a shorter path leads to theirs.

#[cfg(test)]
mod tests;

use database::Error;
use diesel::PgConnection;
use listing::{
    AccessPaths, Bind, Binds, Few, First, Indexed, Order, Page, PageLimits, Sort, Source, Table,
    substring_pattern,
};

use crate::status::shown_status;
use crate::tasks::access::Actor;
use crate::tasks::list_query::{Role, TaskConditions, TaskFilter, TaskListQuery, TaskSort};
use crate::tasks::secrets::PresentedSecret;
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
        TaskSort::Approver => ("approver_key", None),
        TaskSort::Requester => ("requester_key", None),
        TaskSort::DecisionMade => ("decision_made", None),
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
        nullable: matches!(sort.by, TaskSort::DecisionBy | TaskSort::DecisionMade),
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

/// What the filter `text` searches. A line break is in none of its parts.
const SEARCHED: &str = "concat_ws(chr(10), title_key, approver_key, requester_key)";

/// A text in lower case, with one form of each letter and without accents.
fn unaccented(text: &str) -> String {
    let lower = format!("replace(lower({text}), 'ς', 'σ')");
    format!(r"regexp_replace(normalize({lower}, NFD), '[\u0300-\u036f]', '', 'g')")
}

/// A regular expression that texts match of which the unaccented text is a part once their accents are removed, and some
/// others. Matching it takes at most a fifth of the time that removing the accents takes.
fn like_with_accents(unaccented: &str) -> String {
    // A letter that is not ASCII may stand for an ASCII one with an accent.
    const OTHER: &str = r"\u0080-\U0010ffff";
    let signs = format!("regexp_replace(left({unaccented}, 50), '[^a-z0-9{OTHER}]+', '.*', 'g')");
    let letters =
        format!(r"regexp_replace({signs}, '([a-z0-9])', '[\1{OTHER}][\u0300-\u036f]*', 'g')");
    // As a subquery, it is made once and not for each task.
    format!("(SELECT regexp_replace({letters}, '[{OTHER}]+', '[{OTHER}]+', 'g'))")
}

/// Tasks that an index has in this order.
fn indexed(condition: String, order: &'static str) -> Indexed {
    Indexed {
        table: "tasks",
        condition,
        order,
    }
}

/// Tasks with a value in a column that `tasks` and `task_states` have.
fn with_value(column: &str, value: &str) -> Indexed {
    indexed(format!("{column} = {value}"), "ORDER BY created, id")
}

/// The condition of tasks, on a row of `task_states`, which has no secrets.
fn on_state(tasks: &Indexed) -> String {
    if tasks.order.is_empty() {
        format!("task_id = ANY(ARRAY({}))", tasks.first(1))
    } else {
        tasks.condition.clone()
    }
}

/// The tasks of a list or of a count, as parts of statements.
#[derive(Debug, Default)]
struct Selection {
    binds: Binds,
    /// The actor's tasks, by each of the conditions that make one the actor's. Empty if the role is [`Role::Any`], or if
    /// no task is selected.
    own: Vec<Indexed>,
    /// What must hold besides, on a row of `task_states`.
    restrictions: Vec<String>,
    /// Restrictions that an index of `tasks` serves.
    indexed: Vec<Indexed>,
    is_any: bool,
    /// Whether the statements are few enough for connections to keep them.
    is_usual: bool,
    only_pending: bool,
}

impl Selection {
    fn new(actor: &Actor, role: Option<Role>, conditions: &TaskConditions) -> Self {
        let pending = [(TaskFilter::Status, "pending".to_owned())];
        let mut selection = Self {
            is_any: role == Some(Role::Any),
            is_usual: actor.secrets().is_empty(),
            only_pending: conditions.pattern.is_none() && conditions.filters == pending,
            ..Self::default()
        };
        selection.add_own(actor, role);
        for (field, value) in &conditions.filters {
            selection.add_filter(*field, value);
        }
        if let Some(pattern) = &conditions.pattern {
            let pattern = selection.binds.text(substring_pattern(pattern));
            let restriction = format!("title_key LIKE lower({pattern})");
            selection.restrictions.push(restriction);
        }
        selection
    }

    fn is_empty(&self) -> bool {
        self.own.is_empty() && !self.is_any
    }

    fn is_unrestricted(&self) -> bool {
        self.restrictions.is_empty()
    }

    /// What must hold on a row of `task_states`.
    fn condition(&self) -> String {
        let own: Vec<_> = self.own.iter().map(on_state).collect();
        let own = (!self.is_any).then(|| format!("({})", own.join(" OR ")));
        let parts: Vec<_> = own.iter().chain(&self.restrictions).cloned().collect();
        if parts.is_empty() {
            return "true".to_owned();
        }
        parts.join(" AND ")
    }

    /// What must hold on a row of `tasks`, if all tasks of the role are selected.
    fn condition_on_tasks(&self) -> String {
        let own: Vec<_> = self.own.iter().map(|own| own.condition.as_str()).collect();
        if self.is_any {
            return "true".to_owned();
        }
        format!("({})", own.join(") OR ("))
    }

    /// Tasks among which are the selected ones.
    fn supersets(&self) -> Vec<Vec<Indexed>> {
        let own = (!self.own.is_empty()).then(|| self.own.clone());
        let indexed = self.indexed.iter().map(|indexed| vec![indexed.clone()]);
        own.into_iter().chain(indexed).collect()
    }

    fn add_own(&mut self, actor: &Actor, role: Option<Role>) {
        let includes = |wanted| role.is_none_or(|role| role == wanted);
        if let Some(user) = actor.user().filter(|_| includes(Role::Creator)) {
            let user = self.binds.add(Bind::Bytes(user.as_bytes().to_vec()));
            self.own.push(with_value("creator", &user));
        }
        for (wanted, key, secret) in [
            (Role::Approver, "approver_key", "approver_secret"),
            (Role::Requester, "requester_key", "requester_secret"),
        ] {
            if !includes(wanted) {
                continue;
            }
            if let Some(email) = actor.normalized_email() {
                let email = self.binds.text(email);
                self.own.push(with_value(key, &email));
            }
            for presented in actor.secrets() {
                self.add_secret(secret, presented);
            }
        }
        if role.is_none() {
            for presented in actor.secrets() {
                self.add_secret("reading_secret", presented);
            }
        }
    }

    /// A secret names its task: one, or none.
    fn add_secret(&mut self, column: &str, secret: &PresentedSecret) {
        let Some(task) = secret.task else {
            return;
        };
        let task = self.binds.add(Bind::Bytes(task.as_bytes().to_vec()));
        let fingerprint = Bind::Bytes(secret.fingerprint.as_bytes().to_vec());
        let fingerprint = self.binds.add(fingerprint);
        let condition = format!("id = {task} AND {column} = {fingerprint}");
        self.own.push(indexed(condition, ""));
    }

    fn add_filter(&mut self, field: TaskFilter, value: &str) {
        let restriction = match field {
            // A literal, because Postgres uses the indexes of pending tasks only if it sees this value.
            TaskFilter::Status if value == "pending" => "status = 'pending'".to_owned(),
            TaskFilter::Status if value == "cancelled" => "cancelled".to_owned(),
            TaskFilter::Status if value == "rejected" => {
                "status = 'rejected' AND NOT cancelled".to_owned()
            }
            TaskFilter::Status => format!("status = {}", self.binds.text(value)),
            TaskFilter::Public => format!("public = {}", value == "true"),
            TaskFilter::Text => {
                let pattern = self.binds.text(substring_pattern(value));
                let text = unaccented(&self.binds.text(value));
                format!(
                    "{SEARCHED} ~ {} AND {} LIKE {}",
                    like_with_accents(&text),
                    unaccented(SEARCHED),
                    unaccented(&pattern)
                )
            }
            TaskFilter::Approver => self.address("approver_key", value),
            TaskFilter::Requester => self.address("requester_key", value),
            TaskFilter::Title => {
                let title = self.binds.text(value);
                let condition = format!("lower(title) = lower({title})");
                self.indexed.push(indexed(condition, "ORDER BY id"));
                format!("title_key = lower({title})")
            }
        };
        self.restrictions.push(restriction);
    }

    fn address(&mut self, column: &str, value: &str) -> String {
        let key = self.binds.text(value.trim().to_ascii_lowercase());
        let tasks = with_value(column, &key);
        let condition = tasks.condition.clone();
        self.indexed.push(tasks);
        condition
    }
}
