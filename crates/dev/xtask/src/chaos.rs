//! `cargo xtask chaos`: builds and runs the program of `crates/dev/chaos`.

use std::{os::unix::process::CommandExt as _, process::ExitCode};

use anyhow::anyhow;
use clap::Args;

use crate::workspace::Workspace;

/// What goes to the program.
#[derive(Args)]
#[command(disable_help_flag = true)]
pub(crate) struct Arguments {
    /// See `cargo xtask chaos --help`.
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    arguments: Vec<String>,
}

/// Replaces this process, so that signals reach the program.
pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let error = Workspace::find()?
        .cargo()
        .args(["run", "--quiet", "--package", "chaos", "--"])
        .args(&arguments.arguments)
        .exec();
    Err(anyhow!(error).context("running cargo"))
}
