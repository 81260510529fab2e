//! The pages and counts that are measured.

use crate::report::points::Plot;

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

/// Pages and counts of tasks, of which each role of the user has a third.
pub(super) fn tasks(count: usize) -> Vec<Kind> {
    let mut kinds = Vec::new();
    for (name, role) in ROLES {
        let (page, total) = (Some(Plot::TaskPages), Some(Plot::TaskCounts));
        for (state, filter) in [("", ""), (" of pending ones", "&filter=status:pending")] {
            let query = format!("{role}{filter}");
            kinds.push(task_page(&format!("page{state}, {name}"), &query, page));
            kinds.push(task_count(&format!("count{state}, {name}"), &query, total));
        }
    }
    for (name, query, is_counted) in TASK_QUERIES {
        let deep = (count / 3).saturating_sub(30);
        let query = query
            .replace("{deep}", &deep.to_string())
            .replace("{half}", &(deep / 2).to_string());
        let query = format!("&role=creator{query}");
        kinds.push(task_page(&format!("page {name}, mine"), &query, None));
        if is_counted {
            kinds.push(task_count(&format!("count {name}, mine"), &query, None));
        }
    }
    for (state, filter) in [("", ""), (" of pending ones", "&filter=status:pending")] {
        let query = format!("&role=any{filter}");
        let page = task_page(&format!("page{state}, everyone's"), &query, None);
        let total = task_count(&format!("count{state}, everyone's"), &query, None);
        kinds.extend([page, total].map(|kind| Kind {
            caller: Caller::Admin,
            ..kind
        }));
    }
    kinds
}

/// Pages and counts of users.
pub(super) fn users(count: usize) -> Vec<Kind> {
    let usual = Some(Plot::Users);
    let mut kinds = vec![
        user_page("page", "", usual),
        user_page("page of a plan", "&filter=plan:free", usual),
        user_count("count", "", usual),
        user_count("count of a plan", "&filter=plan:free", usual),
    ];
    for sort in USER_SORTS {
        let (field, _) = sort.split_once(':').unwrap_or((sort, ""));
        let query = format!("&sort={sort}");
        kinds.push(user_page(&format!("page by {field}"), &query, None));
        let query = format!("{query}&filter=plan:free");
        kinds.push(user_page(
            &format!("page of a plan by {field}"),
            &query,
            None,
        ));
    }
    for (name, query, is_counted) in USER_QUERIES {
        let query = query.replace("{deep}", &count.saturating_sub(30).to_string());
        kinds.push(user_page(&format!("page {name}"), &query, None));
        if is_counted {
            kinds.push(user_count(&format!("count {name}"), &query, None));
        }
    }
    kinds
}

fn task_page(name: &str, query: &str, plot: Option<Plot>) -> Kind {
    page(name, "/people-task/tasks", query, Caller::User, plot)
}

fn task_count(name: &str, query: &str, plot: Option<Plot>) -> Kind {
    let path = path("/people-task/tasks-count", query);
    kind(name, path, Caller::User, plot)
}

fn user_page(name: &str, query: &str, plot: Option<Plot>) -> Kind {
    page(name, "/users", query, Caller::Admin, plot)
}

fn user_count(name: &str, query: &str, plot: Option<Plot>) -> Kind {
    kind(name, path("/users/count", query), Caller::Admin, plot)
}

fn page(name: &str, base: &str, query: &str, caller: Caller, plot: Option<Plot>) -> Kind {
    let limit = if query.contains("&limit=") {
        ""
    } else {
        "&limit=20"
    };
    kind(name, path(base, &format!("{limit}{query}")), caller, plot)
}

fn kind(name: &str, path: String, caller: Caller, plot: Option<Plot>) -> Kind {
    Kind {
        name: name.to_owned(),
        path,
        caller,
        plot,
    }
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
