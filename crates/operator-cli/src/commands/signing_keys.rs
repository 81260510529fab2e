use std::path::Path;
use std::process::{Command as Process, Stdio};

use anyhow::{Context as _, anyhow};
use clap::{Args, Subcommand, ValueEnum};
use serde_json::{Value, json};
use values::Names as _;

use super::Secrets;
use crate::output::Output;
use crate::{Failure, Outcome};

/// The steps are those of the script, which operators also run without this program.
const SCRIPT: &str = include_str!("../../../../deploy/rotate-keys");

const EXAMPLES: &str = "\
It changes the files of a folder of secrets, as deploy/rotate-keys does, so run it where that folder is. deploy/KEY-ROTATION.md
says what to restart after each step.

Examples:
  countersign signing-keys status token --folder deploy/secrets
  countersign signing-keys rotate token --folder deploy/secrets
  countersign signing-keys drop webhook --folder deploy/secrets";

#[derive(Subcommand)]
#[command(after_help = EXAMPLES)]
pub(crate) enum Command {
    /// Show the keys without their contents.
    Status(Key),
    /// Create a second key, which is published and verifies, but does not sign yet.
    Prepare(Key),
    /// Swap the keys: the second one signs. Another switch undoes it.
    Switch(Key),
    /// Prepare and switch in one step, for one replica of each service.
    Rotate(Key),
    /// Remove the second key: what it signed no longer verifies.
    Drop(Key),
}

#[derive(Args)]
pub(crate) struct Key {
    /// The key.
    #[arg(value_enum)]
    key: Name,
    #[command(flatten)]
    secrets: Secrets,
}

values::names! {
    #[derive(ValueEnum)]
    enum Name {
        /// Signs access tokens.
        Token = "token",
        /// Signs webhooks.
        Webhook = "webhook",
    }
}

pub(crate) fn run(command: &Command, output: Output) -> Outcome {
    let (step, key) = match command {
        Command::Status(key) => ("status", key),
        Command::Prepare(key) => ("prepare", key),
        Command::Switch(key) => ("switch", key),
        Command::Rotate(key) => ("rotate", key),
        Command::Drop(key) => ("drop", key),
    };
    if step == "drop" {
        let key = key.key.name();
        output.confirm(&format!(
            "Drop the second {key} key? What it signed no longer verifies."
        ))?;
    }
    let state = run_script(key.key, step, &key.secrets.folder)?;
    output.done(state.trim_end(), &describe(key, step, &state))
}

/// Returns what the script prints: the state after the step.
fn run_script(key: Name, step: &str, folder: &Path) -> Result<String, Failure> {
    let output = Process::new("sh")
        .args(["-c", SCRIPT, "rotate-keys", key.name(), step])
        .arg(folder)
        .stdin(Stdio::null())
        .output()
        .context("the shell cannot be started")?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    Err(anyhow!("{}", said.trim()).into())
}

fn describe(key: &Key, step: &str, state: &str) -> Value {
    let mut lines = state.lines().map(checksum);
    json!({
        "key": key.key.name(),
        "step": step,
        "folder": key.secrets.folder,
        "signing": lines.next().flatten(),
        "second": lines.next().flatten(),
    })
}

fn checksum(line: &str) -> Option<&str> {
    line.rsplit_once("(checksum ")?.1.strip_suffix(')')
}

#[cfg(test)]
mod tests {
    use super::checksum;

    #[test]
    fn a_line_of_the_script_has_the_checksum_of_a_key() {
        let line = "secrets/token_signing_key.pem signs (checksum 4006)";
        assert_eq!(checksum(line), Some("4006"));
        assert_eq!(checksum("there is no second key"), None);
    }
}
