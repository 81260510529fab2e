//! `cargo xtask chaos`: callers decide tasks while the real processes are killed, frozen and disconnected
//! and the servers stopped. At the end every decision that returned 200 must have been delivered.
//!
//! Invariants: every random choice comes from a seed that is printed first, callers retry nothing, and a
//! run leaves nothing behind, even when it is killed.
//!
//! `cargo xtask upgrade-test` replaces processes under the same load, and no call may fail: see [`upgrade`].
//!
//! Deliberately absent: access to the database. A run is judged by the responses that callers receive, by
//! the requests that receivers receive, and by what the public API says at the end.

mod account_workload;
mod arguments;
mod checker;
mod code_receiver;
mod databases;
mod failovers;
mod fault_injector;
mod final_state;
mod finding;
mod history;
mod mail_receiver;
mod one_shot_client;
mod proxied;
mod receiver;
mod recipients;
mod report;
mod rng;
mod run;
mod schedule;
mod settings;
mod signature;
mod sync;
mod system;
mod task_workload;
mod tcp_proxy;
mod test_user;
mod toggle_listener;
mod upgrade;
mod watchdog;

use std::process::ExitCode;

use clap::{Parser, Subcommand};
use local_stack::random;
use rig::{
    cleanup::{Keep, clean_up},
    errln,
    interrupt::Interrupt,
    outln,
    output::say,
    paint,
    workspace::Workspace,
};

use crate::{arguments::Arguments, report::Report, watchdog::Watchdog};

#[derive(Parser)]
#[command(
    name = "chaos",
    bin_name = "cargo xtask chaos",
    about,
    version,
    args_conflicts_with_subcommands = true
)]
struct Cli {
    #[command(flatten)]
    arguments: Arguments,
    #[command(subcommand)]
    command: Option<Command>,
}

#[derive(Subcommand)]
enum Command {
    /// Cleans up after a run that was killed. Every run starts one.
    #[command(hide = true)]
    Watchdog(watchdog::Arguments),
    /// Replace the processes by others, one after the other, under load. Run as `cargo xtask upgrade-test`.
    #[command(hide = true, bin_name = "cargo xtask upgrade-test")]
    UpgradeTest(upgrade::Arguments),
}

fn main() -> ExitCode {
    let Cli { arguments, command } = Cli::parse();
    let outcome = match command {
        None => run_and_clean_up(&arguments),
        Some(Command::Watchdog(arguments)) => watchdog::run(&arguments),
        Some(Command::UpgradeTest(arguments)) => upgrade::run(&arguments),
    };
    outcome.unwrap_or_else(|error| {
        errln!("{} {error:#}", paint::red("error:"));
        ExitCode::FAILURE
    })
}

fn run_and_clean_up(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let base = Workspace::find()?;
    let seed = match arguments.seed {
        Some(seed) => seed,
        // 32 bits are easy to type.
        None => u64::from(u32::from_be_bytes(random::bytes()?)),
    };
    arguments.print_seed(seed);
    let interrupt = Interrupt::watch()?;
    let _lock = watchdog::lock(&base, watchdog::CHAOS)?;
    let workspace = base.aside(watchdog::CHAOS);
    clean_up(&workspace, Keep::Nothing)?;
    let watchdog = Watchdog::start(&base, watchdog::CHAOS)?;
    let outcome = run::run(&workspace, arguments, seed, &interrupt);
    let passed = outcome.as_ref().is_ok_and(Report::passed);
    say("stopping everything");
    let started = workspace.local().join("log").is_dir();
    let keep = if passed || interrupt.came() || !started {
        Keep::Nothing
    } else {
        Keep::Everything
    };
    clean_up(&workspace, keep)?;
    drop(watchdog);
    if let Ok(report) = &outcome {
        report.print();
    }
    if passed {
        outln!("\nchaos: ok");
        return Ok(ExitCode::SUCCESS);
    }
    if keep == Keep::Everything {
        print_log_folders(&workspace);
    }
    arguments.print_seed(seed);
    outcome.map(|_| {
        outln!("\n{}", paint::red("chaos: failed"));
        ExitCode::FAILURE
    })
}

fn print_log_folders(workspace: &Workspace) {
    let local = workspace.local();
    let local = local.strip_prefix(workspace.root()).unwrap_or(&local);
    say(&format!(
        "the logs of the processes are in {0}/log, those of the servers and their data in {0}/servers",
        local.display()
    ));
}
