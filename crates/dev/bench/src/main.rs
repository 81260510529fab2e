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

mod arguments;
mod context;
mod decisions;
mod environment;
mod http;
mod limits;
mod report;
mod scenarios;
mod system;

use std::process::ExitCode;
use std::time::Duration;

use clap::Parser as _;
use rig::interrupt::Interrupt;
use rig::output::say;
use rig::own::{self, with_own_system};
use rig::workspace::Workspace;
use rig::{outln, paint};

use crate::arguments::Arguments;
use crate::context::Context;
use crate::limits::proxies;
use crate::report::{Figures, Report, markdown, plots, table};
use crate::scenarios::Scenario;
use crate::system::System;

const INTERRUPT_POLL: Duration = Duration::from_millis(100);

/// What a run measured, and the scenarios that failed.
struct Outcome {
    report: Report,
    failed: Vec<String>,
}

fn main() -> ExitCode {
    own::run(|| run(&Arguments::parse()))
}

fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    if arguments.list {
        for scenario in Scenario::all() {
            outln!("{:<16} {}", scenario.name(), scenario.about());
        }
        return Ok(ExitCode::SUCCESS);
    }
    // Read first, so that a wrong file does not cost a run.
    let old = arguments.compare.as_deref().map(Report::read).transpose()?;
    let measure = |workspace: &_, interrupt: &_| measure(workspace, arguments, interrupt);
    let passed = |outcome: &Outcome| outcome.failed.is_empty();
    let outcome = with_own_system(&Workspace::find()?, "bench", measure, passed)?;
    publish(arguments, old.as_ref(), &outcome)?;
    if outcome.failed.is_empty() {
        return Ok(ExitCode::SUCCESS);
    }
    let failed = outcome.failed.join("\n  ");
    outln!("{}\n  {failed}", paint::red("failed:"));
    Ok(ExitCode::FAILURE)
}

fn publish(arguments: &Arguments, old: Option<&Report>, outcome: &Outcome) -> anyhow::Result<()> {
    let report = &outcome.report;
    outln!();
    table::print(&report.figures);
    if let Some(old) = old {
        outln!();
        table::print_comparison(old, report);
    }
    if arguments.markdown {
        outln!("\n{}", markdown::render(report));
    }
    if let Some(path) = &arguments.json {
        report.write(path)?;
    }
    if let Some(folder) = &arguments.plots {
        plots::draw(&report.points, folder)?;
    }
    Ok(())
}

fn measure(
    workspace: &Workspace,
    arguments: &Arguments,
    interrupt: &Interrupt,
) -> anyhow::Result<Outcome> {
    if arguments.scenarios().contains(&Scenario::Gateway) {
        proxies::install()?;
    }
    let system = System::launch(workspace, interrupt)?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let outcome = runtime.block_on(async {
        tokio::select! {
            outcome = measure_all(workspace, arguments, system) => outcome,
            error = interrupted(interrupt) => Err(error),
        }
    });
    // A thread that hashes passwords must not delay the end.
    runtime.shutdown_background();
    outcome
}

async fn interrupted(interrupt: &Interrupt) -> anyhow::Error {
    loop {
        if let Err(error) = interrupt.check() {
            return error;
        }
        tokio::time::sleep(INTERRUPT_POLL).await;
    }
}

async fn measure_all(
    workspace: &Workspace,
    arguments: &Arguments,
    system: System,
) -> anyhow::Result<Outcome> {
    let mut context = Context::new(workspace, system, arguments.quick)?;
    let (mut all, mut points, mut failed) = (Vec::new(), Vec::new(), Vec::new());
    for scenario in arguments.scenarios() {
        let name = scenario.name();
        say(&format!("{name}: {}", scenario.about()));
        let mut figures = Figures::new(&name);
        if let Err(error) = scenario.run(&mut context, &mut figures).await {
            let failure = format!("{name}: {error:#}");
            say(&failure);
            failed.push(failure);
        }
        table::print(&figures.figures);
        all.extend(figures.figures);
        points.extend(figures.points);
    }
    let report = Report {
        command: arguments.command(),
        environment: environment::describe(&context).await?,
        figures: all,
        points,
    };
    Ok(Outcome { report, failed })
}
