//! The report as a part of a page.

use std::fmt::Write as _;

use super::{Figure, Report, table};

/// The figures that people look for first, as scenario and name.
const SHOWN: [&str; 28] = [
    "idle: the system with Postgres and RabbitMQ, idle: processor",
    "decisions: decisions accepted",
    "decisions: webhooks, end to end",
    "decisions: duration of a call, p50",
    "decisions: duration of a call, p99",
    "decisions: decision to receiver, p50",
    "decisions: decision to receiver, p99",
    "fan-out: webhooks, end to end",
    "steady: duration of a call, p50",
    "steady: duration of a call, p99",
    "steady: call to receiver, p50",
    "steady: call to receiver, p99",
    "create: tasks created",
    "register: webhooks registered",
    "backlog: webhooks of a backlog",
    "slow-receivers: webhooks of a healthy host beside 60 that hang",
    "kill-worker: kill to the last webhook, longest",
    "kill-worker: webhooks lost",
    "gateway: gateway in front of nginx",
    "gateway: GET /user",
    "gateway: GET /people-task/tasks/:id",
    "gateway: GET /people-task/tasks, 20 tasks",
    "sign-in: sign-ins",
    "lists: page, all roles, of 1000000 tasks: duration, p50",
    "lists: count, all roles, of 1000000 tasks: duration, p50",
    "lists: page, of 1000000 users: duration, p50",
    "deletion: a user with 200000 tasks, duration",
    "start-up: all six, 60 s after a load: proportional set size",
];

/// Returns the command, the environment and a table of the figures that people look for first.
pub(crate) fn render(report: &Report) -> String {
    let mut text = String::new();
    // Writing to a string cannot fail.
    let _ = writeln!(text, "Command: `{}`\n", report.command);
    for (name, value) in &report.environment {
        let _ = writeln!(text, "- {name}: {value}");
    }
    text.push_str("\n| scenario | figure | value | unit | limit | ratio |\n");
    text.push_str("|---|---|---:|---|---|---:|\n");
    for figure in report.figures.iter().filter(|figure| is_shown(figure)) {
        let cells = table::row(figure).map(|cell| cell.replace('|', "\\|"));
        let _ = writeln!(text, "| {} |", cells.join(" | "));
    }
    text
}

fn is_shown(figure: &Figure) -> bool {
    let name = format!("{}: {}", figure.scenario, figure.name);
    SHOWN.contains(&name.as_str())
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use super::{Report, SHOWN, is_shown, render};

    #[test]
    fn the_page_shows_figures_of_the_file_that_runs_are_compared_with() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../..");
        let report = Report::read(&root.join("docs/benchmarks/figures.json")).unwrap();
        let page = fs::read_to_string(root.join("BENCHMARKS.md")).unwrap();
        assert!(page.ends_with(&render(&report)), "{}", render(&report));
        let shown = report.figures.iter().filter(|figure| is_shown(figure));
        assert_eq!(shown.count(), SHOWN.len());
    }
}
