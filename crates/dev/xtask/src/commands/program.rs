//! Commands that are programs of their own in `crates/dev`.

use std::process::ExitCode;

use clap::Args;

use crate::workspace::Workspace;

/// The arguments of the program.
#[derive(Args)]
#[command(disable_help_flag = true)]
pub(crate) struct Arguments {
    /// See `--help` of the command.
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    arguments: Vec<String>,
}

impl Arguments {
    /// The arguments for a command of the program.
    pub(super) fn of(&self, command: &str) -> Self {
        let command = [command.to_owned()];
        let arguments = command.iter().chain(&self.arguments).cloned().collect();
        Self { arguments }
    }

    pub(super) fn after_command(&self) -> &[String] {
        &self.arguments
    }
}

/// Builds and runs the program of `package`.
pub(crate) fn run(
    options: &[&str],
    package: &str,
    arguments: &Arguments,
) -> anyhow::Result<ExitCode> {
    let options = [options, &["--package", package]].concat();
    Err(Workspace::find()?.exec_run(&options, &arguments.arguments))
}
