//! The command line for operators, as a program of its own.

use std::process::ExitCode;

fn main() -> ExitCode {
    operator_cli::main()
}
