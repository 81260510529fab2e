//! The command line for operators, which the tests run as a process.

use std::process::ExitCode;

fn main() -> ExitCode {
    operator_cli::main()
}
