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
mod databases;
mod failovers;
mod fault_injector;
mod final_state;
mod finding;
mod history;
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
mod system;
mod task_workload;
mod test_user;
mod upgrade;

use std::process::ExitCode;

use clap::{Parser, Subcommand};
use local_stack::random;
use rig::{
    output::{announce_seed, verdict},
    own::{self, with_own_system},
    workspace::Workspace,
};

use crate::{arguments::Arguments, report::Report};

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
    /// Replace the processes by others, one after the other, under load. Run as `cargo xtask upgrade-test`.
    #[command(hide = true, bin_name = "cargo xtask upgrade-test")]
    UpgradeTest(upgrade::Arguments),
}

fn main() -> ExitCode {
    own::run(|| {
        let Cli { arguments, command } = Cli::parse();
        match command {
            None => run(&arguments),
            Some(Command::UpgradeTest(arguments)) => upgrade::run(&arguments),
        }
    })
}

fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let seed = match arguments.seed {
        Some(seed) => seed,
        None => random::seed()?,
    };
    announce_seed("chaos", seed);
    let test = |workspace: &_, interrupt: &_| run::run(workspace, arguments, seed, interrupt);
    let outcome = with_own_system(&Workspace::find()?, "chaos", test, Report::passed);
    let passed = outcome.as_ref().is_ok_and(Report::passed);
    if let Ok(report) = &outcome {
        report.print();
    }
    if !passed {
        announce_seed("chaos", seed);
    }
    outcome.map(|_| verdict("chaos", passed))
}
