//! The pages and counts that are measured.

use crate::report::Plot;

/// A page or a count.
#[derive(Debug)]
pub(super) struct Kind {
    pub(super) name: String,
    pub(super) path: String,
    pub(super) caller: Caller,
    /// Where it is drawn, if people open it all the time.
    pub(super) plot: Option<Plot>,
}

/// Who asks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Caller {
    User,
    Admin,
}

const ROLES: [(&str, &str); 4] = [
    ("all roles", ""),
    ("mine", "&role=creator"),
    ("to decide", "&role=approver"),
    ("asked by me", "&role=requester"),
];
/// Queries of pages, and whether counts accept them, too. `{deep}` is nearly the number of rows that the list has.
const TASK_QUERIES: [(&str, &str, bool); 12] = [
    ("oldest first", "&sort=created:1", false),
    ("by decision time", "&sort=decisionBy:1", false),
    ("by title", "&sort=title:1", false),
    ("by status", "&sort=status:1", false),
    ("by change", "&sort=mtime:-1", false),
    (
        "pending by change",
        "&sort=mtime:-1&filter=status:pending",
        false,
    ),
    ("few: rejected", "&filter=status:rejected", true),
    (
        "few: of an approver",
        "&filter=approver:nobody@example.com",
        true,
    ),
    ("with a pattern", "&pattern=purchase%2012", true),
    ("deep", "&offset={deep}", false),
    (
        "pending, deep",
        "&filter=status:pending&offset={half}",
        false,
    ),
    ("of 1000", "&limit=1000", false),
];
const USER_SORTS: [&str; 7] = [
    "created:-1",
    "mtime:-1",
    "username:1",
    "email:1",
    "plan:1",
    "isActive:1",
    "lastSignIn:-1",
];
/// Queries of pages, and whether counts accept them, too.
const USER_QUERIES: [(&str, &str, bool); 9] = [
    (
        "of a username",
        "&filter=username:person77@example.org",
        true,
    ),
    ("of an address", "&filter=email:person77@example.org", true),
    ("few: of a scope", "&filter=scope:auditor", true),
    ("of a rare plan", "&filter=plan:pro", true),
    ("of a vendor", "&filter=vendor:acme", true),
    ("inactive", "&filter=isActive:false", true),
    ("with a pattern", "&pattern=person12", true),
    ("deep", "&offset={deep}", false),
    ("of 1000", "&limit=1000", false),
];

/// A list and its count.
struct Rows {
    page: &'static str,
    count: &'static str,
    caller: Caller,
    plots: [Plot; 2],
}

const TASKS: Rows = Rows {
    page: "/people-task/tasks",
    count: "/people-task/tasks-count",
    caller: Caller::User,
    plots: [Plot::TaskPages, Plot::TaskCounts],
};
const EVERYONES_TASKS: Rows = Rows {
    caller: Caller::Admin,
    ..TASKS
};
const USERS: Rows = Rows {
    page: "/users",
    count: "/users/count",
    caller: Caller::Admin,
    plots: [Plot::Users; 2],
};

impl Rows {
    /// A page, and its count if that accepts the query, too.
    fn kinds(&self, name: &str, query: &str, is_counted: bool, is_drawn: bool) -> Vec<Kind> {
        let limit = if query.contains("&limit=") {
            ""
        } else {
            "&limit=20"
        };
        let kind = |what: &str, base: &str, limit: &str, plot: Plot| Kind {
            name: format!("{what}{name}"),
            path: path(base, &format!("{limit}{query}")),
            caller: self.caller,
            plot: is_drawn.then_some(plot),
        };
        let [page, count] = self.plots;
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
            kinds.extend(TASKS.kinds(&name, &query, true, true));
        }
    }
    for (name, query, is_counted) in TASK_QUERIES {
        let deep = (count / 3).saturating_sub(30);
        let query = query
            .replace("{deep}", &deep.to_string())
            .replace("{half}", &(deep / 2).to_string());
        let (name, query) = (format!(" {name}, mine"), format!("&role=creator{query}"));
        kinds.extend(TASKS.kinds(&name, &query, is_counted, false));
    }
    for (state, filter) in states {
        let (name, query) = (format!("{state}, everyone's"), format!("&role=any{filter}"));
        kinds.extend(EVERYONES_TASKS.kinds(&name, &query, true, false));
    }
    kinds
}

/// Pages and counts of users.
pub(super) fn users(count: usize) -> Vec<Kind> {
    let mut kinds = USERS.kinds("", "", true, true);
    kinds.extend(USERS.kinds(" of a plan", "&filter=plan:free", true, true));
    for sort in USER_SORTS {
        let (field, _) = sort.split_once(':').unwrap_or((sort, ""));
        for (name, filter) in [("", ""), (" of a plan", "&filter=plan:free")] {
            let (name, query) = (
                format!("{name} by {field}"),
                format!("&sort={sort}{filter}"),
            );
            kinds.extend(USERS.kinds(&name, &query, false, false));
        }
    }
    for (name, query, is_counted) in USER_QUERIES {
        let query = query.replace("{deep}", &count.saturating_sub(30).to_string());
        kinds.extend(USERS.kinds(&format!(" {name}"), &query, is_counted, false));
    }
    kinds
}

fn path(base: &str, query: &str) -> String {
    let query = query.trim_start_matches('&');
    if query.is_empty() {
        base.to_owned()
    } else {
        format!("{base}?{query}")
    }
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
