use listing::{Conditions, substring_pattern};

use super::binds::{Bind, Binds};
use crate::tasks::access::Actor;
use crate::tasks::list_query::{Role, TaskFilter};
use crate::tasks::secrets::PresentedSecret;

/// Tasks that an index of `tasks` finds.
#[derive(Debug)]
pub(super) struct Indexed {
    condition: String,
    /// The order of the index, so that Postgres takes no other way to the first of them.
    order: &'static str,
}

impl Indexed {
    /// The statement that selects the identifiers of the first ones.
    pub(super) fn first(&self, limit: usize) -> String {
        let Self { condition, order } = self;
        format!("(SELECT id FROM tasks WHERE {condition}{order} LIMIT {limit})")
    }
}

/// One of the conditions that make a task one of the actor's.
#[derive(Debug)]
pub(super) struct Branch {
    pub(super) in_tasks: Indexed,
    /// The same condition on a row of `task_states`.
    pub(super) in_states: String,
    /// The same condition on a row of `tasks`, for counts.
    pub(super) counted: String,
}

impl Branch {
    /// Tasks with a value in a column that both tables have.
    fn column(name: &str, value: &str) -> Self {
        let condition = format!("{name} = {value}");
        Self {
            // What an index for counts is limited to, so that it serves them only.
            counted: format!("{condition} AND octet_length({name}) > 0"),
            in_states: condition.clone(),
            in_tasks: Indexed {
                condition,
                order: " ORDER BY created, id",
            },
        }
    }

    /// Tasks with a secret: one, or none.
    fn secret(condition: String) -> Self {
        let order = "";
        let in_tasks = Indexed { condition, order };
        Self {
            in_states: format!("task_id = ANY(ARRAY({}))", in_tasks.first(1)),
            counted: in_tasks.condition.clone(),
            in_tasks,
        }
    }

    /// The condition on a row of `tasks`.
    pub(super) fn condition(&self) -> &str {
        &self.in_tasks.condition
    }
}

/// The tasks of a list or of a count, as parts of statements.
#[derive(Debug, Default)]
pub(super) struct Selection {
    /// The values of the parts.
    pub(super) binds: Binds,
    /// At least one of them must hold. Empty if the role is [`Role::Any`], or if no task is selected.
    pub(super) branches: Vec<Branch>,
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
        selection.add_branches(actor, role);
        for (field, value) in &conditions.filters {
            selection.add_filter(*field, value);
        }
        if let Some(pattern) = &conditions.pattern {
            let pattern = selection.text(substring_pattern(pattern));
            let restriction = format!("title_key LIKE lower({pattern})");
            selection.restrictions.push(restriction);
        }
        selection
    }

    /// Whether no task can be selected.
    pub(super) fn is_empty(&self) -> bool {
        self.branches.is_empty() && !self.is_any
    }

    /// Whether all tasks of the role are selected.
    pub(super) fn is_unrestricted(&self) -> bool {
        self.restrictions.is_empty()
    }

    /// What must hold on a row of `task_states`.
    pub(super) fn condition(&self) -> String {
        let branches: Vec<_> = self.branches.iter().map(|b| b.in_states.as_str()).collect();
        let own = (!self.is_any).then(|| format!("({})", branches.join(" OR ")));
        let parts: Vec<_> = own.iter().chain(&self.restrictions).collect();
        if parts.is_empty() {
            return "true".to_owned();
        }
        let parts: Vec<_> = parts.into_iter().map(String::as_str).collect();
        parts.join(" AND ")
    }

    /// Statements each of which selects the identifiers of all selected tasks and of others, or the first `limit` of
    /// a condition.
    pub(super) fn supersets(&self, limit: usize) -> Vec<String> {
        let own: Vec<_> = self
            .branches
            .iter()
            .map(|branch| branch.in_tasks.first(limit))
            .collect();
        let own = (!own.is_empty()).then(|| own.join(" UNION ALL "));
        let indexed = self.indexed.iter().map(|indexed| indexed.first(limit));
        own.into_iter().chain(indexed).collect()
    }

    fn text(&mut self, text: String) -> String {
        self.binds.add(Bind::Text(text))
    }

    fn add_branches(&mut self, actor: &Actor, role: Option<Role>) {
        let includes = |wanted| role.is_none_or(|role| role == wanted);
        if let Some(user) = actor.user().filter(|_| includes(Role::Creator)) {
            let user = self.binds.add(Bind::Bytes(user.as_bytes().to_vec()));
            let branch = Branch::column("creator", &user);
            self.branches.push(branch);
        }
        for (wanted, key, secret) in [
            (Role::Approver, "approver_key", "approver_secret"),
            (Role::Requester, "requester_key", "requester_secret"),
        ] {
            if !includes(wanted) {
                continue;
            }
            if let Some(email) = actor.normalized_email() {
                let email = self.text(email);
                let branch = Branch::column(key, &email);
                self.branches.push(branch);
            }
            for presented in actor.secrets() {
                self.add_secret(secret, presented);
            }
        }
    }

    /// A secret names its task, unless an earlier version generated it.
    fn add_secret(&mut self, column: &str, secret: &PresentedSecret) {
        let fingerprint = Bind::Bytes(secret.fingerprint.as_bytes().to_vec());
        let fingerprint = self.binds.add(fingerprint);
        let random = format!("{column} = {fingerprint} AND has_random_secrets");
        self.branches.push(Branch::secret(random));
        if let Some(task) = secret.task {
            let task = self.binds.add(Bind::Bytes(task.as_bytes().to_vec()));
            let named = format!("id = {task} AND {column} = {fingerprint}");
            self.branches.push(Branch::secret(named));
        }
    }

    fn add_filter(&mut self, field: TaskFilter, value: &str) {
        let restriction = match field {
            // A literal, because Postgres uses the indexes of pending tasks only if it sees this value.
            TaskFilter::Status if value == "pending" => "status = 'pending'".to_owned(),
            TaskFilter::Status => format!("status = {}", self.text(value.to_owned())),
            TaskFilter::Public => {
                let public = self.binds.add(Bind::Bool(value == "true"));
                format!("public = {public}")
            }
            TaskFilter::Approver => self.address("approver_key", value),
            TaskFilter::Requester => self.address("requester_key", value),
            TaskFilter::Title => {
                let title = self.text(value.to_owned());
                self.indexed.push(Indexed {
                    condition: format!("lower(title) = lower({title})"),
                    order: " ORDER BY id",
                });
                format!("title_key = lower({title})")
            }
        };
        self.restrictions.push(restriction);
    }

    fn address(&mut self, column: &str, value: &str) -> String {
        let key = self.text(value.trim().to_ascii_lowercase());
        let Branch {
            in_tasks,
            in_states,
            ..
        } = Branch::column(column, &key);
        self.indexed.push(in_tasks);
        in_states
    }
}
