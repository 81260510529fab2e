//! The pages and counts that are measured.

use clap::ValueEnum as _;

use crate::report::Plot;

/// Each line has a name, a path, and the plot of what people open all the time. `{deep}` stands for nearly the number of rows
/// that the list has, `{half}` for half of it.
const TASKS: &str = include_str!("tasks.txt");
const USERS: &str = include_str!("users.txt");

pub(super) struct Kind {
    pub(super) name: &'static str,
    pub(super) path: String,
    /// Where it is drawn, if people open it all the time.
    pub(super) plot: Option<Plot>,
}

impl Kind {
    /// Whether only an administrator may ask for it.
    pub(super) fn is_for_administrators(&self) -> bool {
        self.path.starts_with("/users") || self.path.contains("role=any")
    }
}

/// Pages and counts of tasks, of which each role of the user has a third.
pub(super) fn tasks(count: usize) -> Vec<Kind> {
    kinds(TASKS, count / 3)
}

pub(super) fn users(count: usize) -> Vec<Kind> {
    kinds(USERS, count)
}

fn kinds(lines: &'static str, rows: usize) -> Vec<Kind> {
    let deep = rows.saturating_sub(30);
    let [deep, half] = [deep, deep / 2].map(|rows| rows.to_string());
    let kind = |line: &'static str| {
        let (name, rest) = line.split_once(" | ")?;
        let (path, plot) = rest.split_once(" | ").unwrap_or((rest, ""));
        Some(Kind {
            name,
            path: path.replace("{deep}", &deep).replace("{half}", &half),
            plot: Plot::from_str(plot, false).ok(),
        })
    };
    lines.lines().filter_map(kind).collect()
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::{TASKS, USERS, tasks, users};

    #[test]
    fn each_kind_has_a_name_and_a_path_of_its_own() {
        for (kinds, lines) in [(tasks(1_000), TASKS), (users(1_000), USERS)] {
            let names: HashSet<_> = kinds.iter().map(|kind| kind.name).collect();
            assert_eq!(names.len(), kinds.len());
            assert!(kinds.iter().all(|kind| !kind.path.contains('{')));
            assert_eq!(kinds.len(), lines.lines().count());
            let drawn = kinds.iter().filter(|kind| kind.plot.is_some()).count();
            let plots = lines
                .lines()
                .filter(|line| line.matches(" | ").count() == 2);
            assert_eq!(drawn, plots.count());
        }
    }
}
