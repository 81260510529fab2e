//! One file or folder for each command.

mod alerts_test;
mod check;
mod compose_test;
mod countersign;
mod demo;
mod down;
mod program;
mod restore_test;
mod schemathesis;
mod screenshots;
mod test;
mod up;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

use crate::{errln, paint};

#[derive(Parser)]
#[command(name = "cargo xtask", about = "The project's commands", version)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Start everything: private Postgres and RabbitMQ, all processes, and a demo flow engine.
    Up(up::Arguments),
    /// Stop what `up` started.
    Down,
    /// Run the main use case once and print every request, on the running system or on one started for it.
    Demo(demo::Arguments),
    /// Run all tests of the workspace on private servers. Arguments go to the test runner.
    Test(test::Arguments),
    /// Check the dependencies between packages, layers and files, and the migrations.
    Check,
    /// Run the command line for operators on the running system.
    Countersign(program::Arguments),
    /// Kill, stop, cut off and delay everything while decisions are made, and check that none is lost.
    Chaos(program::Arguments),
    /// Upgrade from an earlier version, restart, and rotate keys, all under load and without a failed request.
    UpgradeTest(program::Arguments),
    /// Restore backups in several ways, and check that no token of the lost time is accepted afterwards.
    RestoreTest(restore_test::Arguments),
    /// Break the parts of a system, and check that Prometheus' alerts fire.
    AlertsTest(alerts_test::Arguments),
    /// Test the system against its OpenAPI document, with schemathesis.
    Schemathesis(schemathesis::Arguments),
    /// Take pictures of the web pages with example data, or measure how fast they load, on a system of its own.
    Screenshots(program::Arguments),
    /// Measure a private release build of the system beside the limits of the machine. Arguments go to the program.
    Bench(program::Arguments),
    /// Attack the running system, and measure a normal user and the memory meanwhile.
    AbuseTest(program::Arguments),
    /// Build the images, run the demo on them, restart them, and remove everything again.
    ComposeTest(compose_test::Arguments),
}

/// Runs the command that the arguments name.
pub fn run() -> ExitCode {
    let outcome = match Cli::parse().command {
        Command::Up(arguments) => up::run(&arguments),
        Command::Down => down::run(),
        Command::Demo(arguments) => demo::run(&arguments),
        Command::Test(arguments) => test::run(&arguments),
        Command::Check => check::run(),
        Command::Countersign(arguments) => countersign::run(&arguments),
        Command::Chaos(arguments) => program::run(&[], "chaos", &arguments),
        Command::UpgradeTest(arguments) => {
            program::run(&[], "chaos", &arguments.of("upgrade-test"))
        }
        Command::RestoreTest(arguments) => restore_test::run(&arguments),
        Command::AlertsTest(arguments) => alerts_test::run(&arguments),
        Command::Schemathesis(arguments) => schemathesis::run(&arguments),
        Command::Screenshots(arguments) => screenshots::run(&arguments),
        Command::Bench(arguments) => program::run(&["--release"], "bench", &arguments),
        Command::AbuseTest(arguments) => program::run(&["--release"], "abuse", &arguments),
        Command::ComposeTest(arguments) => compose_test::run(&arguments),
    };
    outcome.unwrap_or_else(|error| {
        errln!("{} {error:#}", paint::red("error:"));
        ExitCode::FAILURE
    })
}
