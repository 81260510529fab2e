//! Tables for a terminal.

use rig::outln;

use super::{Figure, Report, number};

/// Prints figures, each with its limit.
pub(crate) fn print(figures: &[Figure]) {
    let head = ["scenario", "figure", "value", "unit", "limit", "ratio"];
    print_rows(&head, figures.iter().map(row).collect());
}

/// Prints the figures of two reports and how they changed.
pub(crate) fn print_comparison(old: &Report, new: &Report) {
    let head = ["scenario", "figure", "old", "new", "unit", "change"];
    let rows = new.figures.iter().filter_map(|figure| {
        let before = old.find(figure)?.value;
        let change = format!("{:+.1} %", (figure.value / before - 1.0) * 100.0);
        Some([
            figure.scenario.clone(),
            figure.name.clone(),
            number(before),
            number(figure.value),
            figure.unit.clone(),
            if before.abs() > 0.0 {
                change
            } else {
                String::new()
            },
        ])
    });
    print_rows(&head, rows.collect());
}

/// The cells of a figure.
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

fn print_rows(head: &[&str; 6], mut rows: Vec<[String; 6]>) {
    rows.insert(0, head.map(str::to_owned));
    let width = |column: usize| {
        let cells = rows.iter().filter_map(|row| row.get(column));
        cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..head.len()).map(width).collect();
    for row in &rows {
        let cells = row.iter().zip(&widths).enumerate();
        let cells = cells.map(|(column, (cell, width))| match column {
            // Numbers are compared from the right.
            2 | 3 if is_number(cell) => format!("{cell:>width$}"),
            _ => format!("{cell:<width$}"),
        });
        let line: Vec<String> = cells.collect();
        outln!("{}", line.join("  ").trim_end());
    }
}

fn is_number(cell: &str) -> bool {
    cell.starts_with(|first: char| first.is_ascii_digit() || first == '-')
}
