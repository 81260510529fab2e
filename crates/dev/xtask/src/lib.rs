//! The project's own commands: `cargo xtask up`, `down`, `demo`, `test`, `chaos`, `schemathesis`, `check`,
//! `compose-test`.
//!
//! What holds: a command that starts something also stops it, whatever happens in between, unless it
//! was asked to leave it running; nothing is signalled that was not started by these commands.
//!
//! The library is there for `chaos`, which starts the same system.
//!
//! Deliberately absent: database and broker clients. This program has to build on a machine that has
//! only Git, a C compiler and Rust, because it is what installs the rest.
/// Prints a line. Unlike `println!` it goes on when nobody reads any more, as in `cargo xtask up | head`:
/// a command that dies half-way would leave servers behind.
#[macro_export]
macro_rules! outln {
    ($($argument:tt)*) => {{
        use std::io::Write as _;
        let _ = writeln!(std::io::stdout(), $($argument)*);
    }};
}

/// The same for the standard error output.
#[macro_export]
macro_rules! errln {
    ($($argument:tt)*) => {{
        use std::io::Write as _;
        let _ = writeln!(std::io::stderr(), $($argument)*);
    }};
}

mod chaos;
mod check;
pub mod cleanup;
mod compose;
pub mod demo;
mod down;
pub mod duration;
pub mod environment;
pub mod http;
pub mod interrupt;
pub mod launch;
pub mod paint;
pub mod plan;
mod processes;
mod schemathesis;
pub mod secrets;
pub mod stack_file;
pub mod stream;
mod tests_command;
mod up;
pub mod workspace;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

#[derive(Parser)]
#[command(name = "cargo xtask", about = "The project's own commands", version)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Start everything: private Postgres and RabbitMQ, every process, and a demo flow engine.
    Up(up::Arguments),
    /// Stop what `up` started.
    Down,
    /// Run the main job once, visibly, on the running system or on one started for it.
    Demo(demo::Arguments),
    /// Run every test of the workspace on private servers. Arguments go to the test runner.
    Test(tests_command::Arguments),
    /// Kill, stop, cut and delay everything while decisions are made, and check that none is lost.
    Chaos(chaos::Arguments),
    /// Hold the running system against its OpenAPI document, with schemathesis.
    Schemathesis(schemathesis::Arguments),
    /// Check that packages depend on each other only as they should.
    Check,
    /// Build the images, run the demo on them, restart them, and take everything down again.
    ComposeTest(compose::Arguments),
}

/// Runs the command that the arguments name.
pub fn run() -> ExitCode {
    let outcome = match Cli::parse().command {
        Command::Up(arguments) => up::run(&arguments),
        Command::Down => down::run(),
        Command::Demo(arguments) => demo::run(&arguments),
        Command::Test(arguments) => tests_command::run(&arguments),
        Command::Chaos(arguments) => chaos::run(&arguments),
        Command::Schemathesis(arguments) => schemathesis::run(&arguments),
        Command::Check => check::run(),
        Command::ComposeTest(arguments) => compose::run(&arguments),
    };
    outcome.unwrap_or_else(|error| {
        errln!("{} {error:#}", paint::red("error:"));
        ExitCode::FAILURE
    })
}
