//! Rehearsals of what an operator's system may meet. `cargo xtask` builds and runs them.

mod alerts_test;
mod restore_test;
mod schemathesis;

use std::process::ExitCode;

use clap::Parser;

#[derive(Parser)]
#[command(name = "cargo xtask", about = "Rehearsals", version)]
enum Command {
    /// Restore backups in several ways, and check that no token of the lost time is accepted afterwards.
    RestoreTest,
    /// Break the parts of a system, and check that Prometheus' alerts fire.
    AlertsTest(alerts_test::Arguments),
    /// Test the system against its OpenAPI document, with schemathesis.
    Schemathesis(schemathesis::Arguments),
}

fn main() -> ExitCode {
    rig::run(|| match Command::parse() {
        Command::RestoreTest => restore_test::run(),
        Command::AlertsTest(arguments) => alerts_test::run(&arguments),
        Command::Schemathesis(arguments) => schemathesis::run(&arguments),
    })
}
