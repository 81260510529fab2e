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
mod callers;
mod checker;
mod databases;
mod fault_injector;
mod final_state;
mod history;
mod receiver;
mod report;
mod rng;
mod run;
mod schedule;
mod settings;
mod signature;
mod system;
mod task_workload;
mod upgrade;

use std::{path::PathBuf, process::ExitCode, time::Duration};

use clap::{Args, Parser, Subcommand};
use local_stack::random;
use rig::{announce_seed, parse_duration, parse_replicas, verdict, with_own_system};

use crate::report::Report;

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

#[derive(Args)]
struct Arguments {
    /// Repeat the faults and choices of an earlier run. Without it a random seed is used and printed.
    #[arg(long, value_name = "N")]
    seed: Option<u64>,
    /// Duration of load and faults, such as `90s` or `5m`. Recovery takes additional time.
    #[arg(long, default_value = "2m", value_parser = parse_duration)]
    duration: Duration,
    /// Tasks per second. A run of hours uses a lower rate to limit its memory.
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..=1000))]
    rate: u32,
    /// Run several replicas of a process. Can be repeated.
    #[arg(long, value_name = "PROCESS=N", default_value = "webhook-worker=3", value_parser = parse_replicas)]
    replicas: Vec<(String, usize)>,
    /// Run a cluster of this many RabbitMQ nodes. One of them at a time is stopped, killed or cut off.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = parse_broker_nodes)]
    broker_nodes: usize,
    /// Run Postgres with a standby, for which each commit waits. The primary is killed and the standby promoted, and the
    /// standby is stopped.
    #[arg(long)]
    standby: bool,
    /// Run the programs in this folder instead of building them.
    #[arg(long, value_name = "FOLDER")]
    programs: Option<PathBuf>,
}

/// A cluster of two nodes has no majority when one of them is gone.
fn parse_broker_nodes(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(nodes @ (1 | 3 | 5)) => Ok(nodes),
        _ => Err("1, 3 or 5 nodes are possible".to_owned()),
    }
}

#[derive(Subcommand)]
enum Command {
    /// Replace the processes by others, one after the other, under load. Run as `cargo xtask upgrade-test`.
    #[command(hide = true, bin_name = "cargo xtask upgrade-test")]
    UpgradeTest(upgrade::Arguments),
}

fn main() -> ExitCode {
    rig::run(|| {
        let Cli { arguments, command } = Cli::parse();
        match command {
            None => run(&arguments),
            Some(Command::UpgradeTest(arguments)) => upgrade::run(&arguments),
        }
    })
}

fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let seed = arguments.seed.unwrap_or_else(random::seed);
    announce_seed("chaos", seed);
    let test = |workspace: &_| run::run(workspace, arguments, seed);
    let passed = |report: &Report| report.result.passed();
    let report = with_own_system("chaos", test, passed);
    if let Ok(report) = &report {
        report.print();
    }
    let passed = report.as_ref().is_ok_and(passed);
    if !passed {
        announce_seed("chaos", seed);
    }
    report.map(|_| verdict("chaos", passed))
}
