use std::io::{Write as _, stdout};

use clap::{Args, Command};
use clap_complete::Shell;

use crate::failure::Outcome;

const EXAMPLES: &str = "\
Examples:
  countersign completions bash > /etc/bash_completion.d/countersign
  countersign completions zsh > ~/.zfunc/_countersign";

#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// The shell.
    shell: Shell,
}

#[expect(clippy::unnecessary_wraps, reason = "all commands return an outcome")]
/// Prints the completions of `command`.
pub(crate) fn run(arguments: &Arguments, mut command: Command) -> Outcome {
    let mut script = Vec::new();
    clap_complete::generate(arguments.shell, &mut command, "countersign", &mut script);
    // The reader may be gone, as in a pipe to `head`.
    let _ = stdout().write_all(&script);
    Ok(())
}
