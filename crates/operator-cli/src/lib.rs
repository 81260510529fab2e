//! The command line for operators: `countersign`.
//!
//! It is one more name of the program that runs the services, so it is in their image. Users, deletions and deliveries are
//! changed through the public API with an administrator's credentials: the same rules apply, and the audit log says who it
//! was. Only what the API does not offer goes to the database or the broker, with the settings of the process in whose
//! environment it runs.
//!
//! Exit codes: see [`Failure`]. Nothing is destroyed without a confirmation.

mod api;
mod cli;
mod commands;
mod failure;
mod output;

use std::process::ExitCode;

use clap::Parser as _;

pub use failure::Failure;

use crate::cli::Cli;

/// The entry point of the program `countersign`.
pub fn main() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => {
            // Help and the version are errors, too, and go to standard output. The reader may be gone.
            let _ = error.print();
            return ExitCode::from(u8::try_from(error.exit_code()).unwrap_or(Failure::USAGE));
        }
    };
    match cli.run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            telemetry::print_error(format!("countersign: {failure}"));
            failure.exit_code()
        }
    }
}
