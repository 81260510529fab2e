use std::process::ExitCode;

use database::OwnerSettings;
use messaging::dead_letters_command;
use server::Program;

use crate::schema::{MIGRATIONS, SCHEMA};
use crate::{deliveries, run, run_webhook_worker};

/// The programs by their names.
pub const PROGRAMS: [Program; 2] = [
    ("people-task-service", people_task_service),
    ("webhook-worker", webhook_worker),
];

/// The service of tasks, decisions and webhooks over HTTP.
fn people_task_service() -> ExitCode {
    // The command `migrate` runs the pending migrations of the schema as its owner, and exits.
    server::command("migrate", async |owner: OwnerSettings| {
        Ok(database::migrate(&owner.url, SCHEMA, MIGRATIONS).await?)
    })
    .unwrap_or_else(|| server::main("people-task-service", run))
}

/// The process that sends decisions to webhooks.
fn webhook_worker() -> ExitCode {
    dead_letters_command(deliveries::QUEUE)
        .unwrap_or_else(|| server::main("webhook-worker", run_webhook_worker))
}
