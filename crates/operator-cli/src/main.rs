//! The command line for operators: `countersign`.
//!
//! Users, deletions and deliveries are changed through the public API with an administrator's credentials: the same rules
//! apply, and the audit log says who it was. Only what the API does not offer goes to the database or the broker, with the
//! settings of the process in whose environment it runs.
//!
//! Exit codes: see [`Failure`]. Nothing is destroyed without a confirmation.

mod api;
mod cli;
mod commands;
mod output;

use std::process::ExitCode;

use clap::Parser as _;

use crate::cli::Cli;

fn main() -> ExitCode {
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

/// Why a command did not do what it was asked. Each kind has an exit code of its own.
#[derive(Debug, thiserror::Error)]
enum Failure {
    /// Exit code 1: something does not work or is unhealthy, or the API refused what it was given.
    #[error("{0:#}")]
    Failed(#[from] anyhow::Error),
    /// Exit code 1, too: there were too many requests or attempts, and it has to wait.
    #[error("{0}")]
    Limited(String),
    /// Exit code 1, too: it is in a state that does not allow it.
    #[error("{0}")]
    Conflict(String),
    /// Exit code 2: the arguments do not make sense together, or there are no credentials.
    #[error("{0}")]
    Usage(String),
    /// Exit code 3: there is no such user, task, delivery or deletion.
    #[error("{0}")]
    NotFound(String),
    /// Exit code 4: the credentials do not allow it, or it was not confirmed.
    #[error("{0}")]
    Refused(String),
}

impl Failure {
    const USAGE: u8 = 2;

    fn exit_code(&self) -> ExitCode {
        ExitCode::from(match self {
            Self::Failed(_) | Self::Limited(_) | Self::Conflict(_) => 1,
            Self::Usage(_) => Self::USAGE,
            Self::NotFound(_) => 3,
            Self::Refused(_) => 4,
        })
    }
}

impl From<app_config::Error> for Failure {
    fn from(error: app_config::Error) -> Self {
        Self::Failed(error.into())
    }
}

/// What a command returns.
type Outcome = Result<(), Failure>;
