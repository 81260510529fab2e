//! Plots as SVG files, for pages.

use std::fs;
use std::ops::Range;
use std::path::Path;

use anyhow::{Context as _, Result};
use clap::ValueEnum as _;
use plotters::chart::ChartContext;
use plotters::coord::Shift;
use plotters::coord::ranged1d::{Ranged, ValueFormatter};
use plotters::prelude::*;

use super::{Lines, Plot, number};

const SIZE: (u32, u32) = (960, 520);
const CHART_WIDTH: u32 = 700;
const FONT: &str = "sans-serif";
/// The share by which an axis is longer than its values.
const MARGIN: f64 = 1e-6;
const LEGEND_STEP: usize = 24;
/// Colours that people who see few colours can tell apart, after Okabe and Ito.
const COLOURS: [RGBColor; 8] = [
    RGBColor(0, 114, 178),
    RGBColor(213, 94, 0),
    RGBColor(0, 158, 115),
    RGBColor(204, 121, 167),
    RGBColor(86, 180, 233),
    RGBColor(230, 159, 0),
    RGBColor(0, 0, 0),
    RGBColor(120, 120, 120),
];

type Area<'file> = DrawingArea<SVGBackend<'file>, Shift>;

impl Plot {
    fn title(self) -> &'static str {
        match self {
            Self::TaskPages => "Pages of 20 tasks: duration, p50",
            Self::TaskCounts => "Counts of tasks: duration, p50",
            Self::Users => "Pages of 20 users, and counts: duration, p50",
            Self::Memory => "Memory during and after a load: proportional set size",
        }
    }

    fn axes(self) -> (&'static str, &'static str) {
        match self {
            Self::TaskPages | Self::TaskCounts => ("tasks", "ms"),
            Self::Users => ("users", "ms"),
            Self::Memory => ("s", "MiB"),
        }
    }
}

/// Draws each plot that has points.
pub(crate) fn draw(lines: &Lines, folder: &Path) -> Result<()> {
    fs::create_dir_all(folder).with_context(|| format!("creating {}", folder.display()))?;
    for plot in Plot::value_variants().iter().copied() {
        let lines = lines_of(plot, lines);
        if lines.is_empty() {
            continue;
        }
        let name = plot.to_possible_value().context("a plot has no name")?;
        let path = folder.join(name.get_name()).with_extension("svg");
        let area = SVGBackend::new(&path, SIZE).into_drawing_area();
        draw_plot(plot, &lines, &area).with_context(|| format!("drawing {}", path.display()))?;
    }
    Ok(())
}

struct Line<'lines> {
    name: &'lines str,
    colour: RGBColor,
    points: &'lines [(f64, f64)],
}

fn lines_of(plot: Plot, lines: &Lines) -> Vec<Line<'_>> {
    let lines = lines.iter().filter(|((of, _), _)| *of == plot);
    let lines = lines.zip(COLOURS.into_iter().cycle());
    let lines = lines.map(|(((_, name), points), colour)| Line {
        name,
        colour,
        points,
    });
    lines.collect()
}

fn draw_plot(plot: Plot, lines: &[Line<'_>], area: &Area<'_>) -> Result<()> {
    // Without a background, black text could not be read on a dark page.
    area.fill(&WHITE)?;
    let (chart, legend) = area.split_horizontally(CHART_WIDTH);
    let points = || lines.iter().flat_map(|line| line.points);
    let (xs, ys) = (points().map(|point| point.0), points().map(|point| point.1));
    let mut builder = ChartBuilder::on(&chart);
    builder
        .caption(plot.title(), (FONT, 18))
        .margin(12)
        .x_label_area_size(44)
        .y_label_area_size(68);
    if plot == Plot::Memory {
        let (x, y) = (0.0..largest(xs), 0.0..largest(ys) * 1.1);
        draw_lines(plot, lines, &mut builder.build_cartesian_2d(x, y)?)?;
    } else {
        let (x, y) = (decades(xs).log_scale(), decades(ys).log_scale());
        draw_lines(plot, lines, &mut builder.build_cartesian_2d(x, y)?)?;
    }
    draw_legend(lines, &legend)?;
    Ok(area.present()?)
}

fn draw_lines<X, Y>(
    plot: Plot,
    lines: &[Line<'_>],
    chart: &mut ChartContext<'_, SVGBackend<'_>, Cartesian2d<X, Y>>,
) -> Result<()>
where
    X: Ranged<ValueType = f64> + ValueFormatter<f64>,
    Y: Ranged<ValueType = f64> + ValueFormatter<f64>,
{
    let (x, y) = plot.axes();
    chart
        .configure_mesh()
        .x_desc(x)
        .y_desc(y)
        .x_label_formatter(&|value| number(*value))
        .y_label_formatter(&|value| number(*value))
        .label_style((FONT, 13))
        .axis_desc_style((FONT, 14))
        .light_line_style(WHITE)
        .bold_line_style(RGBColor(220, 220, 220))
        .draw()?;
    for line in lines {
        let style = line.colour.stroke_width(2);
        chart.draw_series(LineSeries::new(line.points.iter().copied(), style))?;
        // Points on a line of thousands would hide it.
        if plot != Plot::Memory {
            let points = line.points.iter();
            chart.draw_series(points.map(|at| Circle::new(*at, 3, line.colour.filled())))?;
        }
    }
    Ok(())
}

fn draw_legend(lines: &[Line<'_>], area: &Area<'_>) -> Result<()> {
    for (top, line) in (64..).step_by(LEGEND_STEP).zip(lines) {
        let stroke = line.colour.stroke_width(3);
        area.draw(&PathElement::new([(4, top), (26, top)], stroke))?;
        area.draw(&Text::new(line.name, (34, top - 7), (FONT, 14)))?;
    }
    Ok(())
}

fn largest(values: impl Iterator<Item = f64>) -> f64 {
    values.fold(1.0, f64::max)
}

/// The smallest range of whole powers of ten that has all values, which are above zero.
fn decades(values: impl Iterator<Item = f64> + Clone) -> Range<f64> {
    let smallest = values.clone().fold(f64::MAX, f64::min).max(1e-6);
    let largest = values.fold(0.0, f64::max).max(smallest);
    let start = smallest.log10().floor();
    let end = largest.log10().ceil().max(start + 1.0);
    // A little more, so that rounding errors do not hide the labels of both ends.
    10_f64.powf(start) * (1.0 - MARGIN)..10_f64.powf(end) * (1.0 + MARGIN)
}

#[cfg(test)]
mod tests {
    use super::{Lines, Plot, decades, draw};

    #[test]
    fn axes_have_whole_decades() {
        for (values, start, end) in [
            ([2.0, 30.0], 1.0, 100.0),
            ([0.2, 0.3], 0.1, 1.0),
            ([1.0, 1.0], 1.0, 10.0),
        ] {
            let range = decades(values.into_iter());
            assert!((range.start / start - 1.0).abs() < 1e-3, "{range:?}");
            assert!((range.end / end - 1.0).abs() < 1e-3, "{range:?}");
        }
    }

    #[test]
    fn only_plots_with_points_are_drawn() {
        let folder = std::env::temp_dir().join(format!("bench-plots-{}", std::process::id()));
        let points = vec![(1_000.0, 0.5), (1_000_000.0, 40.0)];
        let lines = Lines::from([((Plot::TaskPages, "page, mine".to_owned()), points)]);
        draw(&lines, &folder).unwrap();
        let text = std::fs::read_to_string(folder.join("task-pages.svg")).unwrap();
        let other = folder.join("users.svg").exists();
        std::fs::remove_dir_all(&folder).unwrap();
        for label in ["page, mine", "1,000,000", "0.100", "100"] {
            assert!(text.contains(&format!("\n{label}\n")), "{label}");
        }
        assert!(!other);
    }
}
