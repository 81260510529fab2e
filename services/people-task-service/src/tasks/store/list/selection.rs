use listing::{Bind, Binds, Conditions, Indexed, substring_pattern};

use crate::tasks::access::Actor;
use crate::tasks::list_query::{Role, TaskFilter};
use crate::tasks::secrets::PresentedSecret;

/// What the filter `text` searches. A line break is in none of its parts.
const SEARCHED: &str = "concat_ws(chr(10), title_key, approver_key, requester_key)";

/// A text in lower case, without the accents of its letters.
fn unaccented(text: &str) -> String {
    format!(r"regexp_replace(normalize(lower({text}), NFD), '[\u0300-\u036f]', '', 'g')")
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
pub(super) fn on_state(tasks: &Indexed) -> String {
    if tasks.order.is_empty() {
        format!("task_id = ANY(ARRAY({}))", tasks.first(1))
    } else {
        tasks.condition.clone()
    }
}

/// The tasks of a list or of a count, as parts of statements.
#[derive(Debug, Default)]
pub(super) struct Selection {
    /// The values of the parts.
    pub(super) binds: Binds,
    /// The actor's tasks, by each of the conditions that make one the actor's. Empty if the role is [`Role::Any`], or if
    /// no task is selected.
    pub(super) own: Vec<Indexed>,
    /// What must hold besides, on a row of `task_states`.
    restrictions: Vec<String>,
    /// Restrictions that an index of `tasks` serves.
    indexed: Vec<Indexed>,
    pub(super) is_any: bool,
    /// Whether the statements are few enough for connections to keep them.
    pub(super) is_usual: bool,
    /// Whether the only restriction is that tasks are pending.
    pub(super) only_pending: bool,
}

impl Selection {
    pub(super) fn new(
        actor: &Actor,
        role: Option<Role>,
        conditions: &Conditions<TaskFilter>,
    ) -> Self {
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

    /// Whether no task can be selected.
    pub(super) fn is_empty(&self) -> bool {
        self.own.is_empty() && !self.is_any
    }

    /// Whether all tasks of the role are selected.
    pub(super) fn is_unrestricted(&self) -> bool {
        self.restrictions.is_empty()
    }

    /// What must hold on a row of `task_states`.
    pub(super) fn condition(&self) -> String {
        let own: Vec<_> = self.own.iter().map(on_state).collect();
        let own = (!self.is_any).then(|| format!("({})", own.join(" OR ")));
        let parts: Vec<_> = own.iter().chain(&self.restrictions).cloned().collect();
        if parts.is_empty() {
            return "true".to_owned();
        }
        parts.join(" AND ")
    }

    /// What must hold on a row of `tasks`, if all tasks of the role are selected.
    pub(super) fn condition_on_tasks(&self) -> String {
        let own: Vec<_> = self.own.iter().map(|own| own.condition.as_str()).collect();
        if self.is_any {
            return "true".to_owned();
        }
        format!("({})", own.join(") OR ("))
    }

    /// Tasks among which are the selected ones.
    pub(super) fn supersets(&self) -> Vec<Vec<Indexed>> {
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
                let text = self.binds.text(substring_pattern(value));
                format!("{} LIKE {}", unaccented(SEARCHED), unaccented(&text))
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
