//! Figures and how they are printed.

pub(crate) mod plots;
pub(crate) mod table;

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use clap::ValueEnum;
use indexmap::IndexMap;
use serde::{Deserialize, Serialize};

use crate::http::Call;
use crate::usage::Usage;

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Report {
    pub(crate) command: String,
    /// The machine and the versions, each with its name.
    pub(crate) environment: Vec<(String, String)>,
    pub(crate) figures: Vec<Figure>,
    /// What the plots show, which are files of their own.
    #[serde(skip)]
    pub(crate) lines: Lines,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Figure {
    pub(crate) scenario: String,
    pub(crate) name: String,
    pub(crate) value: f64,
    pub(crate) unit: String,
    /// What the value is read beside.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) limits: Vec<Limit>,
}

/// A value of the same unit, measured in the same run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Limit {
    pub(crate) name: String,
    pub(crate) value: f64,
}

impl Limit {
    pub(crate) fn new(name: &str, value: f64) -> Self {
        Self {
            name: name.to_owned(),
            value,
        }
    }
}

impl Figure {
    /// The value as a share of each limit.
    pub(crate) fn ratios(&self) -> Vec<f64> {
        let limits = self.limits.iter().map(|limit| limit.value);
        limits.map(|limit| self.value / limit).collect()
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, ValueEnum)]
pub(crate) enum Plot {
    TaskPages,
    TaskCounts,
    Users,
    Memory,
}

/// The points of each line in the order in which they were measured, by the plot and the name of the line.
pub(crate) type Lines = IndexMap<(Plot, String), Vec<(f64, f64)>>;

#[derive(Default)]
pub(crate) struct Figures {
    pub(crate) scenario: String,
    pub(crate) figures: Vec<Figure>,
    pub(crate) lines: Lines,
}

impl Figures {
    pub(crate) fn point(&mut self, plot: Plot, line: &str, x: f64, y: f64) {
        let line = self.lines.entry((plot, line.to_owned()));
        line.or_default().push((x, y));
    }

    pub(crate) fn add(&mut self, name: impl Into<String>, value: f64, unit: &str) {
        self.add_beside(name, value, unit, &[]);
    }

    pub(crate) fn add_beside(
        &mut self,
        name: impl Into<String>,
        value: f64,
        unit: &str,
        limits: &[Limit],
    ) {
        self.figures.push(Figure {
            scenario: self.scenario.clone(),
            name: name.into(),
            value,
            unit: unit.to_owned(),
            limits: limits.to_vec(),
        });
    }

    /// Adds how the machine's processor time was used, which tells whether the processor was the limit.
    pub(crate) fn add_shares(&mut self, name: &str, before: &Usage, after: &Usage) {
        let [used, idle] = after.shares_since(before);
        let unit = "% of the machine";
        self.add(format!("{name}: processor, all together"), used, unit);
        self.add(format!("{name}: idle processor"), idle, unit);
    }

    /// Adds the median and the 99th percentile, each beside that of `others`.
    pub(crate) fn add_spread(&mut self, name: &str, spread: Spread, others: &[(&str, Spread)]) {
        let p50 = others.iter().map(|(name, of)| Limit::new(name, of.p50));
        let p99 = others.iter().map(|(name, of)| Limit::new(name, of.p99));
        let [p50, p99] = [p50.collect::<Vec<_>>(), p99.collect()];
        self.add_beside(format!("{name}, p50"), spread.p50, "ms", &p50);
        self.add_beside(format!("{name}, p99"), spread.p99, "ms", &p99);
    }
}

impl Report {
    pub(crate) fn read(path: &Path) -> Result<Self> {
        let failed = || format!("reading {}", path.display());
        let text = fs::read_to_string(path).with_context(failed)?;
        serde_json::from_str(&text).with_context(failed)
    }

    pub(crate) fn write(&self, path: &Path) -> Result<()> {
        let text = serde_json::to_string_pretty(self)? + "\n";
        fs::write(path, text).with_context(|| format!("writing {}", path.display()))
    }

    pub(crate) fn find(&self, figure: &Figure) -> Option<&Figure> {
        let key = |of: &Figure| (of.scenario.clone(), of.name.clone(), of.unit.clone());
        let mut figures = self.figures.iter();
        figures.find(|other| key(other) == key(figure))
    }
}

/// A number with three significant digits, but no fewer than its integer part has, and none after a whole number.
pub(crate) fn number(value: f64) -> String {
    let digits = match value.abs() {
        // Counts are whole.
        size if size >= 100.0 || size.fract() == 0.0 => 0,
        size if size >= 10.0 => 1,
        size if size >= 1.0 => 2,
        _ => 3,
    };
    let mut text = format!("{value:.digits$}");
    let integer = text.find('.').unwrap_or(text.len());
    let first = usize::from(text.starts_with('-')) + 1;
    for place in (first..integer).rev() {
        if (integer - place).is_multiple_of(3) {
            text.insert(place, ',');
        }
    }
    text
}

/// The median, the 99th percentile and the maximum, in milliseconds.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct Spread {
    pub(crate) p50: f64,
    pub(crate) p99: f64,
    pub(crate) longest: f64,
}

impl Spread {
    pub(crate) fn of(times: impl Iterator<Item = Duration>) -> Self {
        let mut times: Vec<Duration> = times.collect();
        times.sort_unstable();
        // The smallest value that is at least as large as the given share of all values.
        let at = |percent: usize| {
            let index = (times.len() * percent).div_ceil(100).saturating_sub(1);
            times.get(index).copied().unwrap_or_default().as_secs_f64() * 1e3
        };
        Self {
            p50: at(50),
            p99: at(99),
            longest: at(100),
        }
    }
}

/// How long calls took, from when they were due.
pub(crate) fn durations(calls: &[Call]) -> Spread {
    Spread::of(calls.iter().map(Call::latency))
}

/// Calls per second, from the first one that was due to the last response.
pub(crate) fn rate(calls: &[Call]) -> f64 {
    let first = calls.iter().map(|call| call.due).min();
    let last = calls.iter().map(|call| call.end).max();
    per_second(calls.len(), first, last)
}

pub(crate) fn per_second(count: usize, first: Option<Instant>, last: Option<Instant>) -> f64 {
    let (Some(first), Some(last)) = (first, last) else {
        return 0.0;
    };
    let seconds = last.saturating_duration_since(first).as_secs_f64();
    count as f64 / seconds.max(f64::EPSILON)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::{Figure, Limit, Lines, Report, Spread, number};

    #[test]
    fn numbers_have_three_digits_and_separated_thousands() {
        for (value, text) in [
            (0.0, "0"),
            (16.0, "16"),
            (0.01234, "0.012"),
            (1.234, "1.23"),
            (12.34, "12.3"),
            (123.4, "123"),
            (1234.5, "1,234"),
            (1_234_567.0, "1,234,567"),
            (-1234.6, "-1,235"),
        ] {
            assert_eq!(number(value), text);
        }
    }

    #[test]
    fn a_report_is_read_as_it_was_written() {
        let figure = Figure {
            scenario: "decisions".to_owned(),
            name: "accepted".to_owned(),
            value: 1.5,
            unit: "/s".to_owned(),
            limits: vec![Limit::new("pgbench -N", 3.0)],
        };
        let report = Report {
            command: "cargo xtask bench".to_owned(),
            environment: vec![("cores".to_owned(), "2".to_owned())],
            figures: vec![figure.clone()],
            lines: Lines::default(),
        };
        let path = std::env::temp_dir().join(format!("bench-report-{}", std::process::id()));
        report.write(&path).unwrap();
        let read = Report::read(&path).unwrap();
        std::fs::remove_file(&path).unwrap();
        assert_eq!(read.find(&figure), Some(&figure));
        assert_eq!(read.figures[0].ratios(), [0.5]);
    }

    #[test]
    fn percentiles_are_values_that_were_measured() {
        let times = |count: u64| (1..=count).rev().map(Duration::from_millis);
        let spread = Spread::of(times(100));
        assert!((spread.p50 - 50.0).abs() < 1e-9, "{spread:?}");
        assert!((spread.p99 - 99.0).abs() < 1e-9, "{spread:?}");
        let spread = Spread::of(times(1));
        assert!((spread.p99 - 1.0).abs() < 1e-9, "{spread:?}");
        assert_eq!(Spread::of(times(0)), Spread::default());
    }
}
