//! The arguments of the command.

use std::path::PathBuf;

use clap::Parser;

use crate::scenarios::Scenario;

/// Measures the system beside the limits of the machine, on a private stack that it starts and stops.
#[derive(Debug, Parser)]
#[command(name = "bench", bin_name = "cargo xtask bench", version)]
pub(crate) struct Arguments {
    /// Run only these scenarios, as in `--only decisions,steady`.
    #[arg(long, value_delimiter = ',', value_name = "SCENARIO")]
    pub(crate) only: Vec<Scenario>,
    /// Make every scenario smaller. All together take about ten minutes.
    #[arg(long)]
    pub(crate) quick: bool,
    /// Write the figures to a file.
    #[arg(long, value_name = "FILE")]
    pub(crate) json: Option<PathBuf>,
    /// Compare the figures with a file that `--json` wrote.
    #[arg(long, value_name = "FILE")]
    pub(crate) compare: Option<PathBuf>,
    /// Print the most important figures as Markdown, too.
    #[arg(long)]
    pub(crate) markdown: bool,
    /// Draw plots of the lists and of the memory in this folder, as far as their scenarios ran.
    #[arg(long, value_name = "FOLDER")]
    pub(crate) plots: Option<PathBuf>,
    /// List the scenarios.
    #[arg(long)]
    pub(crate) list: bool,
}

impl Arguments {
    /// The scenarios to run, in their usual order.
    pub(crate) fn scenarios(&self) -> Vec<Scenario> {
        let is_included = |scenario: &Scenario| match self.only.is_empty() {
            true => !scenario.is_only_on_request(),
            false => self.only.contains(scenario),
        };
        Scenario::all().filter(is_included).collect()
    }

    /// The command that repeats the run.
    pub(crate) fn command(&self) -> String {
        let mut command = "cargo xtask bench".to_owned();
        if self.quick {
            command.push_str(" --quick");
        }
        if !self.only.is_empty() {
            let names: Vec<String> = self.only.iter().map(Scenario::name).collect();
            command.push_str(&format!(" --only {}", names.join(",")));
        }
        command
    }
}
