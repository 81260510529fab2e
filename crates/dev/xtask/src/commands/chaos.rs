//! `cargo xtask chaos`: builds and runs the program of `crates/dev/chaos`.

use std::process::ExitCode;

use clap::Args;

use crate::workspace::Workspace;

/// The arguments of the program.
#[derive(Args)]
#[command(disable_help_flag = true)]
pub(crate) struct Arguments {
    /// See `cargo xtask chaos --help`.
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    arguments: Vec<String>,
}

pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    Err(Workspace::find()?.exec_run(&["--package", "chaos"], &arguments.arguments))
}
