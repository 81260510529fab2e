//! The commands for every day. `cargo xtask` builds and runs them.

mod compose_test;
mod countersign;
mod demo;
mod screenshots;
mod test;
mod up;

use std::process::ExitCode;

use clap::Parser;

#[derive(Parser)]
#[command(name = "cargo xtask", about = "The project's commands", version)]
enum Command {
    /// Start everything: private Postgres and RabbitMQ, all processes, and a demo flow engine.
    Up(up::Arguments),
    /// Stop what `up` started.
    Down,
    /// Run the main use case once and print every request, on the running system or on one started for it.
    Demo(demo::Arguments),
    /// Run all tests of the workspace on private servers. Arguments go to the test runner.
    Test {
        /// Arguments of the test runner, as in `cargo xtask test -- -p gateway a_stranger`.
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        runner: Vec<String>,
    },
    /// Run the command line for operators on the running system.
    #[command(disable_help_flag = true)]
    Countersign {
        /// See `--help` of the command.
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        arguments: Vec<String>,
    },
    /// Take pictures of the web pages with example data, or measure how fast they load, on a system of its own.
    Screenshots(screenshots::Arguments),
    /// Build the images, run the demo on them, restart them, and remove everything again.
    ComposeTest,
}

fn main() -> ExitCode {
    rig::run(|| match Command::parse() {
        Command::Up(arguments) => up::run(&arguments),
        Command::Down => up::stop(),
        Command::Demo(arguments) => demo::run(&arguments),
        Command::Test { runner } => test::run(&runner),
        Command::Countersign { arguments } => countersign::run(&arguments),
        Command::Screenshots(arguments) => screenshots::run(&arguments),
        Command::ComposeTest => compose_test::run(),
    })
}
