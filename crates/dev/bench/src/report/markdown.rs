//! The report as a part of a page.

use std::fmt::Write as _;

use super::{Report, table};

/// Returns the command, the environment and a table.
pub(crate) fn render(report: &Report) -> String {
    let mut text = String::new();
    // Writing to a string cannot fail.
    let _ = writeln!(text, "Command: `{}`\n", report.command);
    for (name, value) in &report.environment {
        let _ = writeln!(text, "- {name}: {value}");
    }
    text.push_str("\n| scenario | figure | value | unit | limit | ratio |\n");
    text.push_str("|---|---|---:|---|---|---:|\n");
    for figure in &report.figures {
        let cells = table::row(figure).map(|cell| cell.replace('|', "\\|"));
        let _ = writeln!(text, "| {} |", cells.join(" | "));
    }
    text
}
