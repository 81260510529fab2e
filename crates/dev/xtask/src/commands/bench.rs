//! `cargo xtask bench`: builds and runs the program of `crates/dev/bench`.

use std::process::ExitCode;

use clap::Args;

use crate::workspace::Workspace;

/// The arguments of the program.
#[derive(Args)]
#[command(disable_help_flag = true)]
pub(crate) struct Arguments {
    /// See `cargo xtask bench --help`.
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    arguments: Vec<String>,
}

pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let options = ["--release", "--package", "bench"];
    Err(Workspace::find()?.exec_run(&options, &arguments.arguments))
}
