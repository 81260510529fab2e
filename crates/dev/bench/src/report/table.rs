//! Tables of figures, for a terminal and for a page.

use std::fmt::Write as _;

use comfy_table::{CellAlignment, Table, presets};
use rig::outln;

use super::{Figure, Report, number};

/// The figures that people look for first, as scenario and name.
const SHOWN: &str = include_str!("shown.txt");

pub(crate) fn print(figures: &[Figure]) {
    let head = ["scenario", "figure", "value", "unit", "limit", "ratio"];
    print_rows(head, figures.iter().map(row), 1);
}

pub(crate) fn print_comparison(old: &Report, new: &Report) {
    let head = ["scenario", "figure", "old", "new", "unit", "change"];
    let rows = new.figures.iter().filter_map(|figure| {
        let before = old.find(figure)?.value;
        let change = Some((figure.value / before - 1.0) * 100.0);
        let change = change.filter(|change| change.is_finite());
        Some([
            figure.scenario.clone(),
            figure.name.clone(),
            number(before),
            number(figure.value),
            figure.unit.clone(),
            change.map_or_else(String::new, |change| format!("{change:+.1} %")),
        ])
    });
    print_rows(head, rows, 2);
}

fn row(figure: &Figure) -> [String; 6] {
    let limits = figure.limits.iter();
    let limits: Vec<String> = limits
        .map(|limit| format!("{} ({})", number(limit.value), limit.name))
        .collect();
    let ratios: Vec<String> = figure.ratios().into_iter().map(number).collect();
    [
        figure.scenario.clone(),
        figure.name.clone(),
        number(figure.value),
        figure.unit.clone(),
        limits.join("; "),
        ratios.join("; "),
    ]
}

/// `values` columns after the first two have numbers, which are compared from the right.
fn print_rows(head: [&str; 6], rows: impl Iterator<Item = [String; 6]>, values: usize) {
    let mut table = Table::new();
    table.load_preset(presets::NOTHING);
    table.set_header(head).add_rows(rows);
    for column in table.column_iter_mut() {
        column.set_padding((0, 2));
    }
    for column in table.column_iter_mut().skip(2).take(values) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    outln!("{}", table.trim_fmt());
}

/// Returns the command, the environment and a table of the figures that people look for first.
pub(crate) fn markdown(report: &Report) -> String {
    let mut text = String::new();
    // Writing to a string cannot fail.
    let _ = writeln!(text, "Command: `{}`\n", report.command);
    for (name, value) in &report.environment {
        let _ = writeln!(text, "- {name}: {value}");
    }
    text.push_str("\n| scenario | figure | value | unit | limit | ratio |\n");
    text.push_str("|---|---|---:|---|---|---:|\n");
    for figure in report.figures.iter().filter(|figure| is_shown(figure)) {
        let cells = row(figure).map(|cell| cell.replace('|', "\\|"));
        let _ = writeln!(text, "| {} |", cells.join(" | "));
    }
    text
}

fn is_shown(figure: &Figure) -> bool {
    let name = format!("{}: {}", figure.scenario, figure.name);
    SHOWN.lines().any(|shown| shown == name)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use super::{Report, SHOWN, is_shown, markdown};

    #[test]
    fn the_page_shows_figures_of_the_file_that_runs_are_compared_with() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../..");
        let report = Report::read(&root.join("docs/benchmarks/figures.json")).unwrap();
        let page = fs::read_to_string(root.join("BENCHMARKS.md")).unwrap();
        assert!(page.ends_with(&markdown(&report)), "{}", markdown(&report));
        let shown = report.figures.iter().filter(|figure| is_shown(figure));
        assert_eq!(shown.count(), SHOWN.lines().count());
    }
}
