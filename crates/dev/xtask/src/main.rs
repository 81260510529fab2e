//! `cargo xtask COMMAND`: becomes cargo, which builds the program that has the command and becomes it.
//!
//! It has no dependencies, so that a new machine compiles it in a second. The commands are in `devtools` and
//! `drills` and in programs of their own.

mod build;
mod check;

use std::{
    env,
    io::{self, Write as _},
    os::unix::process::CommandExt as _,
    process::ExitCode,
};

/// A command of `cargo xtask`.
struct Task {
    name: &'static str,
    /// The package and program that has the command. It is given the command's name, too, unless it is called so itself.
    program: &'static str,
    about: &'static str,
}

const fn task(name: &'static str, program: &'static str, about: &'static str) -> Task {
    Task {
        name,
        program,
        about,
    }
}

/// The program of `check`, which this one has itself.
const XTASK: &str = "xtask";

const TASKS: [Task; 15] = [
    task(
        "up",
        "devtools",
        "Start everything: private Postgres and RabbitMQ, all processes, and a demo flow engine",
    ),
    task("down", "devtools", "Stop what `up` started"),
    task(
        "demo",
        "devtools",
        "Run the main use case once and print every request, on the running system or on one started for it",
    ),
    task(
        "test",
        "devtools",
        "Run all tests of the workspace on private servers. Arguments go to the test runner",
    ),
    task(
        "check",
        XTASK,
        "Check the dependencies between packages, layers and modules",
    ),
    task(
        "countersign",
        "devtools",
        "Run the command line for operators on the running system",
    ),
    task(
        "chaos",
        "chaos",
        "Kill, stop, cut off and delay everything while decisions are made, and check that none is lost",
    ),
    task(
        "upgrade-test",
        "chaos",
        "Upgrade from an earlier version, restart, and rotate keys, all under load and without a failed request",
    ),
    task(
        "restore-test",
        "drills",
        "Restore backups in several ways, and check that no token of the lost time is accepted afterwards",
    ),
    task(
        "alerts-test",
        "drills",
        "Break the parts of a system, and check that Prometheus' alerts fire",
    ),
    task(
        "schemathesis",
        "drills",
        "Test the system against its OpenAPI document, with schemathesis",
    ),
    task(
        "screenshots",
        "devtools",
        "Take pictures of the web pages with example data, or measure how fast they load",
    ),
    task(
        "bench",
        "bench",
        "Measure a private release build of the system beside the limits of the machine",
    ),
    task(
        "abuse-test",
        "bench",
        "Attack a private system, and measure a normal user and the memory meanwhile",
    ),
    task(
        "compose-test",
        "devtools",
        "Build the images, run the demo on them, restart them, and remove everything again",
    ),
];

/// The program that measures, and so is optimised.
const OPTIMISED: &str = "bench";

fn main() -> ExitCode {
    let mut arguments = env::args_os();
    let name = arguments.nth(1).unwrap_or_default();
    let Some(task) = TASKS.iter().find(|task| name == task.name) else {
        let asked = name.is_empty() || name == "help" || name == "--help" || name == "-h";
        print_usage(if asked { None } else { name.to_str() });
        return ExitCode::from(if asked { 0 } else { 2 });
    };
    let outcome = if task.program == XTASK {
        check::run()
    } else {
        become_program(task, arguments)
    };
    outcome.unwrap_or_else(|error| {
        report(&format!("error: {error}"));
        ExitCode::FAILURE
    })
}

/// Returns only on an error.
fn become_program(task: &Task, arguments: env::ArgsOs) -> Result<ExitCode, String> {
    let mut command = build::run(task.program, task.program == OPTIMISED);
    match task.name {
        "chaos" | "bench" => {}
        // A scenario that `bench` runs only on request.
        "abuse-test" => drop(command.args(["--only", "abuse"])),
        name => drop(command.arg(name)),
    }
    let error = command.args(arguments).exec();
    Err(format!("running cargo: {error}"))
}

fn print_usage(unknown: Option<&str>) {
    if let Some(name) = unknown {
        report(&format!("error: there is no command {name}\n"));
    }
    report("Usage: cargo xtask COMMAND\n\nCommands:");
    for task in &TASKS {
        report(&format!("  {:13} {}", task.name, task.about));
    }
    report("\n`cargo xtask COMMAND --help` prints the arguments of a command.");
}

/// Prints a line, without panicking when standard error is closed.
fn report(line: &str) {
    let _ = writeln!(io::stderr(), "{line}");
}
