//! `cargo xtask COMMAND`: becomes cargo, which builds the program that has the command and becomes it.
//!
//! It has no dependencies, so that a new machine compiles it in a second. The commands are in `devtools` and
//! `drills` and in programs of their own.

mod build;
mod check;

use std::env;
use std::io::{self, Write as _};
use std::os::unix::process::CommandExt as _;
use std::process::ExitCode;

/// The commands: the name of each, the program that has it with its first arguments, and what it does.
const TASKS: &str = include_str!("tasks.txt");

/// The name, the program and the purpose of each command.
fn tasks() -> impl Iterator<Item = (&'static str, &'static str, &'static str)> {
    TASKS.lines().filter_map(|line| {
        let (name, rest) = line.split_once(" | ")?;
        let (program, about) = rest.split_once(" | ")?;
        Some((name, program, about))
    })
}

fn main() -> ExitCode {
    let mut arguments = env::args_os();
    let name = arguments.nth(1).unwrap_or_default();
    let Some((_, program, _)) = tasks().find(|(task, ..)| name == *task) else {
        let asked = name.is_empty() || name == "help" || name == "--help" || name == "-h";
        print_usage(if asked { None } else { name.to_str() });
        return ExitCode::from(if asked { 0 } else { 2 });
    };
    let outcome = if program == "xtask" {
        check::run()
    } else {
        become_program(program, arguments)
    };
    outcome.unwrap_or_else(|error| {
        report(&format!("error: {error}"));
        ExitCode::FAILURE
    })
}

/// Returns only on an error.
fn become_program(words: &str, arguments: env::ArgsOs) -> Result<ExitCode, String> {
    let mut words = words.split(' ');
    let program = words.next().unwrap_or_default();
    let mut command = if program.contains('/') {
        build::command(&build::root().join(program))
    } else {
        build::run(program)
    };
    let error = command.args(words).args(arguments).exec();
    Err(format!(
        "running {}: {error}",
        command.get_program().display()
    ))
}

fn print_usage(unknown: Option<&str>) {
    if let Some(name) = unknown {
        report(&format!("error: there is no command {name}\n"));
    }
    report("Usage: cargo xtask COMMAND\n\nCommands:");
    for (task, _, about) in tasks() {
        report(&format!("  {task:13} {about}"));
    }
    report("\n`cargo xtask COMMAND --help` prints the arguments of a command.");
}

/// Prints a line, without panicking when standard error is closed.
fn report(line: &str) {
    let _ = writeln!(io::stderr(), "{line}");
}
