use clap::{CommandFactory as _, Parser, Subcommand};
use clap_complete::{Shell, generate};

use crate::Outcome;
use crate::api::Global;
use crate::commands::{
    config, dead_letters, deletions, deliveries, doctor, first_decision, keys, migrate,
    signing_keys, status, tokens, users,
};

const EXIT_CODES: &str = "\
Exit codes:
  0  done
  1  it failed, the API refused what it was given, or something is unhealthy
  2  the command line is wrong, or there are no credentials
  3  there is no such user, key, task, delivery or deletion
  4  the credentials do not allow it, or it was not confirmed

Settings are read from the environment, or from the file that CONFIG_FILE names. In the containers of the services everything
is set already:

  docker compose exec user-service countersign status";

const COMPLETIONS: &str = "\
Examples:
  countersign completions bash > /etc/bash_completion.d/countersign
  countersign completions zsh > ~/.zfunc/_countersign";

/// Operate Countersign: see its state, and change users, tokens, deliveries and deletions.
#[derive(Parser)]
#[command(name = "countersign", bin_name = "countersign", version, after_help = EXIT_CODES)]
pub(crate) struct Cli {
    #[command(flatten)]
    global: Global,
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Show the state of every process: version, readiness, queues, deliveries, pools.
    Status(status::Arguments),
    /// Say what is there and what is missing, line by line, with what to do.
    Doctor(doctor::Arguments),
    /// Try it out: ask the administrator for a decision, decide, and show it.
    FirstDecision(first_decision::Arguments),
    /// List, show, create and change users.
    #[command(subcommand)]
    Users(users::Command),
    /// Revoke access tokens.
    #[command(subcommand)]
    Tokens(tokens::Command),
    /// List deliveries, send them again, cancel them, and pause hosts.
    #[command(subcommand)]
    Deliveries(deliveries::Command),
    /// List, repeat and cancel deletions of users.
    #[command(subcommand)]
    Deletions(deletions::Command),
    /// List, replay and discard messages that no worker could handle.
    #[command(subcommand)]
    DeadLetters(dead_letters::Command),
    /// List, make, end and confirm API keys.
    #[command(subcommand)]
    Keys(keys::Command),
    /// Rotate signing keys in a folder of secrets.
    #[command(subcommand)]
    SigningKeys(signing_keys::Command),
    /// Run the pending migrations of a schema as its owner.
    Migrate(migrate::Arguments),
    /// Check settings.
    #[command(subcommand)]
    Config(config::Command),
    /// Print the completions of a shell.
    #[command(after_help = COMPLETIONS)]
    Completions {
        /// The shell.
        shell: Shell,
    },
}

impl Cli {
    pub(crate) fn run(&self) -> Outcome {
        let (global, output) = (&self.global, self.global.output);
        match &self.command {
            Command::Status(arguments) => status::run(arguments, output),
            Command::Doctor(arguments) => doctor::run(arguments, global, output),
            Command::FirstDecision(arguments) => first_decision::run(arguments, global, output),
            Command::Users(command) => users::run(command, global, output),
            Command::Tokens(command) => tokens::run(command, global, output),
            Command::Deliveries(command) => deliveries::run(command, global, output),
            Command::Deletions(command) => deletions::run(command, global, output),
            Command::DeadLetters(command) => dead_letters::run(command, output),
            Command::Keys(command) => keys::run(command, global, output),
            Command::SigningKeys(command) => signing_keys::run(command, output),
            Command::Migrate(arguments) => migrate::run(arguments, output),
            Command::Config(command) => config::run(command, output),
            Command::Completions { shell } => {
                let mut script = Vec::new();
                generate(*shell, &mut Self::command(), "countersign", &mut script);
                Ok(telemetry::print(&String::from_utf8_lossy(&script))?)
            }
        }
    }
}
