//! What plots show.

use serde::{Deserialize, Serialize};

/// A plot of the report.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Plot {
    /// Durations of pages of tasks over the number of tasks.
    TaskPages,
    /// Durations of counts of tasks over the number of tasks.
    TaskCounts,
    /// Durations of pages and counts of users over the number of users.
    Users,
    /// Memory of each process over time.
    Memory,
}

/// One measured point of a line.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Point {
    pub(crate) plot: Plot,
    /// The name of the line.
    pub(crate) series: String,
    pub(crate) x: f64,
    pub(crate) y: f64,
}
