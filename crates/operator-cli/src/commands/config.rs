use app_config::{Reader, Settings};
use clap::{Subcommand, ValueEnum};
use people_task_service::{PeopleTaskServiceSettings, WebhookWorkerSettings};
use serde_json::json;
use server::ProcessSettings;
use user_service::{DeletionWorkerSettings, NotificationWorkerSettings, UserServiceSettings};

use crate::Outcome;
use crate::output::Output;

const EXAMPLES: &str = "\
It reads the settings of its own environment as the process would, connects to nothing, and names the first setting that is
missing or invalid. It does not know those of the gateway, which names such a setting when it starts.

Example, before a restart with changed settings:
  docker compose run --rm --no-deps webhook-worker countersign config check webhook-worker";

#[derive(Subcommand)]
#[command(after_help = EXAMPLES)]
pub(crate) enum Command {
    /// Check the settings of a process.
    Check {
        /// The process.
        #[arg(value_enum)]
        process: Process,
    },
}

#[derive(Debug, Clone, Copy, ValueEnum)]
pub(crate) enum Process {
    UserService,
    DeletionWorker,
    NotificationWorker,
    PeopleTaskService,
    WebhookWorker,
}

pub(crate) fn run(command: &Command, output: Output) -> Outcome {
    let Command::Check { process } = command;
    let warnings = check(*process)?;
    let mut sentence = "The settings are valid.".to_owned();
    for warning in &warnings {
        sentence = format!("{sentence}\nwarning: {warning}");
    }
    output.done(&sentence, &json!({"valid": true, "warnings": warnings}))
}

/// Reads the settings of a process. Returns its warnings.
pub(crate) fn check(process: Process) -> Result<Vec<String>, app_config::Error> {
    match process {
        Process::UserService => read::<UserServiceSettings>(),
        Process::DeletionWorker => read::<DeletionWorkerSettings>(),
        Process::NotificationWorker => read::<NotificationWorkerSettings>(),
        Process::PeopleTaskService => read::<PeopleTaskServiceSettings>(),
        Process::WebhookWorker => read::<WebhookWorkerSettings>(),
    }
}

fn read<S: Settings>() -> Result<Vec<String>, app_config::Error> {
    let mut reader = Reader::from_process()?;
    ProcessSettings::read(&mut reader)?;
    S::read(&mut reader)?;
    Ok(reader.warnings().to_vec())
}
