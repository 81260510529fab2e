//! Tables for a terminal.

use rig::outln;

use super::{Figure, Report, number};

/// Prints figures, each with its limit.
pub(crate) fn print(figures: &[Figure]) {
    let rows = figures.iter().map(|figure| row(figure).to_vec()).collect();
    print_rows(
        &["scenario", "figure", "value", "unit", "limit", "ratio"],
        rows,
    );
}

/// Prints the figures of two reports and how they changed.
pub(crate) fn print_comparison(old: &Report, new: &Report) {
    let rows = new
        .figures
        .iter()
        .filter_map(|figure| {
            let before = old.find(figure)?.value;
            let change = if before.abs() > 0.0 {
                format!("{:+.1} %", (figure.value / before - 1.0) * 100.0)
            } else {
                String::new()
            };
            Some(vec![
                figure.scenario.clone(),
                figure.name.clone(),
                number(before),
                number(figure.value),
                figure.unit.clone(),
                change,
            ])
        })
        .collect();
    print_rows(
        &["scenario", "figure", "old", "new", "unit", "change"],
        rows,
    );
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

fn print_rows(head: &[&str], mut rows: Vec<Vec<String>>) {
    rows.insert(0, head.iter().map(ToString::to_string).collect());
    let width = |column: usize| {
        let cells = rows.iter().filter_map(|row| row.get(column));
        cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..head.len()).map(width).collect();
    for row in &rows {
        let cells = row.iter().zip(&widths).enumerate();
        let line: Vec<String> = cells
            .map(|(column, (cell, width))| match column {
                // Numbers are compared from the right.
                2 | 3 if is_number(cell) => format!("{cell:>width$}"),
                _ => format!("{cell:<width$}"),
            })
            .collect();
        outln!("{}", line.join("  ").trim_end());
    }
}

fn is_number(cell: &str) -> bool {
    cell.starts_with(|first: char| first.is_ascii_digit() || first == '-')
}
