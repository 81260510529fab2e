//! `cargo xtask bench`: measures a private release build of the system, and beside each figure what the machine does
//! without the system.
//!
//! Each scenario starts with empty tables and a new webhook-worker. Nothing is asserted about the figures, because they
//! depend on the machine; the command fails if a webhook is lost.
//!
//! Invariants: load goes only to loopback addresses, in a number that is known before it starts. Every wait has a limit.
//! What the run started is gone when it ends, also after Ctrl-C.
//!
//! Deliberately absent: a general load generator. None follows a decision to its webhook, and most need more of the
//! processor than the system that they measure.

mod context;
mod decisions;
mod environment;
/// A small HTTP/1.1 client and receiver that need little of the processor, which they share with the system.
mod http {
    mod connection;
    mod load;
    mod receiver;

    pub(crate) use connection::{Connection, Response, connect, request};
    pub(crate) use load::{Call, Pace, send};
    pub(crate) use receiver::{Behaviour, Receiver};
}
mod proxies;
mod report;
mod scenarios;
mod tables;
mod usage;

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::Result;
use clap::{Parser, ValueEnum as _};
use local_stack::{Need, packages};
use rig::paint::RED;
use rig::{Workspace, interrupt, outln, say, with_own_system};

use crate::context::Context;
use crate::report::{Figures, Report, plots, table};
use crate::scenarios::Scenario;

const INTERRUPT_POLL: Duration = Duration::from_millis(100);

/// Measures the system beside the limits of the machine, on a private stack that it starts and stops.
#[derive(Debug, Parser)]
#[command(name = "bench", bin_name = "cargo xtask bench", version)]
struct Arguments {
    /// Run only these scenarios, as in `--only decisions,steady`.
    #[arg(long, value_delimiter = ',', value_name = "SCENARIO")]
    only: Vec<Scenario>,
    /// Make every scenario smaller. All together take about ten minutes.
    #[arg(long)]
    quick: bool,
    /// Write the figures to a file.
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Compare the figures with a file that `--json` wrote.
    #[arg(long, value_name = "FILE")]
    compare: Option<PathBuf>,
    /// Print the most important figures as Markdown, too.
    #[arg(long)]
    markdown: bool,
    /// Draw plots of the lists and of the memory in this folder, as far as their scenarios ran.
    #[arg(long, value_name = "FOLDER")]
    plots: Option<PathBuf>,
    /// List the scenarios.
    #[arg(long)]
    list: bool,
}

impl Arguments {
    /// The scenarios to run, in their usual order.
    fn scenarios(&self) -> Vec<Scenario> {
        let is_included = |scenario: &Scenario| match self.only.is_empty() {
            // It tests more than it measures.
            true => *scenario != Scenario::Abuse,
            false => self.only.contains(scenario),
        };
        let all = Scenario::value_variants().iter().copied();
        all.filter(is_included).collect()
    }

    /// The command that repeats the run.
    fn command(&self) -> String {
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

/// What a run measured, and how scenarios failed.
type Outcome = (Report, Vec<String>);

fn main() -> ExitCode {
    rig::run(|| run(&Arguments::parse()))
}

fn run(arguments: &Arguments) -> Result<ExitCode> {
    if arguments.list {
        for scenario in Scenario::value_variants() {
            outln!("{:<16} {}", scenario.name(), scenario.about());
        }
        return Ok(ExitCode::SUCCESS);
    }
    // Read first, so that a wrong file does not cost a run.
    let old = arguments.compare.as_deref().map(Report::read).transpose()?;
    let measure = |workspace: &_| measure(workspace, arguments);
    let passed = |(_, failed): &Outcome| failed.is_empty();
    let (report, failed) = with_own_system("bench", measure, passed)?;
    publish(arguments, old.as_ref(), &report)?;
    if failed.is_empty() {
        return Ok(ExitCode::SUCCESS);
    }
    outln!("{RED}failed:{RED:#}\n  {}", failed.join("\n  "));
    Ok(ExitCode::FAILURE)
}

fn publish(arguments: &Arguments, old: Option<&Report>, report: &Report) -> Result<()> {
    outln!();
    table::print(&report.figures);
    if let Some(old) = old {
        outln!();
        table::print_comparison(old, report);
    }
    if arguments.markdown {
        outln!("\n{}", table::markdown(report));
    }
    if let Some(path) = &arguments.json {
        report.write(path)?;
    }
    if let Some(folder) = &arguments.plots {
        plots::draw(&report.lines, folder)?;
    }
    Ok(())
}

fn measure(workspace: &Workspace, arguments: &Arguments) -> Result<Outcome> {
    if arguments.scenarios().contains(&Scenario::Gateway) {
        packages::ensure(&[Need::HAPROXY, Need::NGINX], &say)?;
    }
    let mut context = Context::start(workspace, arguments.quick)?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let outcome = runtime.block_on(async {
        tokio::select! {
            outcome = measure_all(arguments, &mut context) => outcome,
            error = interrupted() => Err(error),
        }
    });
    // A thread that hashes passwords must not delay the end.
    runtime.shutdown_background();
    outcome
}

async fn interrupted() -> anyhow::Error {
    loop {
        if let Err(error) = interrupt::check() {
            return error;
        }
        tokio::time::sleep(INTERRUPT_POLL).await;
    }
}

async fn measure_all(arguments: &Arguments, context: &mut Context) -> Result<Outcome> {
    let (mut figures, mut failed) = (Figures::default(), Vec::new());
    for scenario in arguments.scenarios() {
        let name = scenario.name();
        say(&format!("{name}: {}", scenario.about()));
        figures.scenario.clone_from(&name);
        let first = figures.figures.len();
        if let Err(error) = scenario.run(context, &mut figures).await {
            let failure = format!("{name}: {error:#}");
            say(&failure);
            failed.push(failure);
        }
        table::print(figures.figures.get(first..).unwrap_or_default());
    }
    let report = Report {
        command: arguments.command(),
        environment: environment::describe(context).await?,
        figures: figures.figures,
        lines: figures.lines,
    };
    Ok((report, failed))
}
