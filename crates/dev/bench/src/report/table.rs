//! Tables for a terminal.

use comfy_table::{CellAlignment, Table, presets};
use rig::outln;

use super::{Figure, Report, number};

/// Prints figures, each with its limit.
pub(crate) fn print(figures: &[Figure]) {
    let head = ["scenario", "figure", "value", "unit", "limit", "ratio"];
    print_rows(head, figures.iter().map(row), 1);
}

/// Prints the figures of two reports and how they changed.
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

pub(crate) fn row(figure: &Figure) -> [String; 6] {
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
