//! The pages and counts that are measured.

use crate::report::Plot;

/// A page or a count.
pub(super) struct Kind {
    pub(super) name: String,
    pub(super) path: String,
    /// Whether an administrator asks for it.
    pub(super) by_admin: bool,
    /// Where it is drawn, if people open it all the time.
    pub(super) plot: Option<Plot>,
}

const ROLES: [(&str, &str); 4] = [
    ("all roles", ""),
    ("mine", "&role=creator"),
    ("to decide", "&role=approver"),
    ("asked by me", "&role=requester"),
];
/// The name and the query of each kind. `{deep}` is nearly the number of rows that the list has.
const TASK_QUERIES: &str = include_str!("task_queries.txt");
const USER_QUERIES: &str = include_str!("user_queries.txt");

fn queries(text: &str) -> impl Iterator<Item = (&str, &str)> {
    text.lines().filter_map(|line| line.split_once(" | "))
}

/// A list and its count.
struct Rows {
    page: &'static str,
    count: &'static str,
    by_admin: bool,
    plots: [Plot; 2],
}

const TASKS: Rows = Rows {
    page: "/people-task/tasks",
    count: "/people-task/tasks-count",
    by_admin: false,
    plots: [Plot::TaskPages, Plot::TaskCounts],
};
const EVERYONES_TASKS: Rows = Rows {
    by_admin: true,
    ..TASKS
};
const USERS: Rows = Rows {
    page: "/users",
    count: "/users/count",
    by_admin: true,
    plots: [Plot::Users; 2],
};

impl Rows {
    /// A page, and its count if that accepts the query, too.
    fn kinds(&self, name: &str, query: &str, is_drawn: bool) -> Vec<Kind> {
        let has_limit = query.contains("&limit=");
        let limit = if has_limit { "" } else { "&limit=20" };
        let kind = |what: &str, base: &str, limit: &str, plot: Plot| {
            let query = format!("{limit}{query}");
            Kind {
                name: format!("{what}{name}"),
                path: format!("{base}?{}", query.trim_start_matches('&')),
                by_admin: self.by_admin,
                plot: is_drawn.then_some(plot),
            }
        };
        let [page, count] = self.plots;
        let of_pages = ["&sort=", "&offset=", "&limit="];
        let is_counted = !of_pages.iter().any(|one| query.contains(one));
        let mut kinds = vec![kind("page", self.page, limit, page)];
        kinds.extend(is_counted.then(|| kind("count", self.count, "", count)));
        kinds
    }
}

/// Pages and counts of tasks, of which each role of the user has a third.
pub(super) fn tasks(count: usize) -> Vec<Kind> {
    let states = [("", ""), (" of pending ones", "&filter=status:pending")];
    let mut kinds = Vec::new();
    for (name, role) in ROLES {
        for (state, filter) in states {
            let (name, query) = (format!("{state}, {name}"), format!("{role}{filter}"));
            kinds.extend(TASKS.kinds(&name, &query, true));
        }
    }
    for (name, query) in queries(TASK_QUERIES) {
        let deep = (count / 3).saturating_sub(30);
        let query = query
            .replace("{deep}", &deep.to_string())
            .replace("{half}", &(deep / 2).to_string());
        let (name, query) = (format!(" {name}, mine"), format!("&role=creator{query}"));
        kinds.extend(TASKS.kinds(&name, &query, false));
    }
    for (state, filter) in states {
        let (name, query) = (format!("{state}, everyone's"), format!("&role=any{filter}"));
        kinds.extend(EVERYONES_TASKS.kinds(&name, &query, false));
    }
    kinds
}

pub(super) fn users(count: usize) -> Vec<Kind> {
    let mut kinds = USERS.kinds("", "", true);
    kinds.extend(USERS.kinds(" of a plan", "&filter=plan:free", true));
    for (name, query) in queries(USER_QUERIES) {
        let query = query.replace("{deep}", &count.saturating_sub(30).to_string());
        kinds.extend(USERS.kinds(&format!(" {name}"), &query, false));
    }
    kinds
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::{tasks, users};

    #[test]
    fn each_kind_has_a_name_and_a_path_of_its_own() {
        for kinds in [tasks(1_000), users(1_000)] {
            let names: HashSet<_> = kinds.iter().map(|kind| &kind.name).collect();
            assert_eq!(names.len(), kinds.len());
            assert!(kinds.iter().all(|kind| !kind.path.contains('{')));
        }
    }
}
