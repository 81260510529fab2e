//! The output of the commands, and how they end.

use std::io::Write as _;
use std::process::{ExitCode, ExitStatus};

use crate::paint::{DIM, RED};

/// Prints a line. Unlike `println!` it does not panic when standard output is closed, as in
/// `cargo xtask up | head`: a command that stops halfway would leave servers running.
#[macro_export]
macro_rules! outln {
    ($($argument:tt)*) => {{
        use std::io::Write as _;
        let _ = writeln!($crate::stdout(), $($argument)*);
    }};
}

pub fn say(text: &str) {
    outln!("{DIM}==>{DIM:#} {text}");
}

/// Prints a line to standard error, without panicking when it is closed.
pub fn complain(text: &str) {
    let _ = writeln!(anstream::stderr(), "{text}");
}

/// Prints how to repeat a run with the same random choices: by its arguments and the seed.
pub fn announce_seed(command: &str, seed: u64) {
    let mut given = std::env::args().skip(1);
    let mut arguments = String::new();
    while let Some(argument) = given.next() {
        match argument.as_str() {
            "--seed" => drop(given.next()),
            other if other == command || other.starts_with("--seed=") => {}
            other => arguments += &format!(" {other}"),
        }
    }
    say(&format!(
        "seed {seed}; repeat this run with: cargo xtask {command}{arguments} --seed {seed}"
    ));
}

/// Says whether a test passed. Returns the exit code.
pub fn verdict(test: &str, passed: bool) -> ExitCode {
    if passed {
        outln!("\n{test}: ok");
        ExitCode::SUCCESS
    } else {
        outln!("\n{RED}{test}: failed{RED:#}");
        ExitCode::FAILURE
    }
}

/// The exit code of another program, for this one.
pub fn exit_code(status: ExitStatus) -> ExitCode {
    let code = status.code().and_then(|code| u8::try_from(code).ok());
    code.map_or(ExitCode::FAILURE, ExitCode::from)
}
