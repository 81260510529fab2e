use std::process::ExitCode;

use database::{DatabaseSettings, OwnerSettings};
use messaging::dead_letters_command;
use server::Program;

use crate::revocations::revoke_all_tokens;
use crate::schema::{MIGRATIONS, SCHEMA};
use crate::{deletions, notifications, run, run_deletion_worker, run_notification_worker};

/// The programs by their names.
pub const PROGRAMS: [Program; 3] = [
    ("user-service", user_service),
    ("deletion-worker", deletion_worker),
    ("notification-worker", notification_worker),
];

fn user_service() -> ExitCode {
    // The command `migrate` runs the pending migrations of the schema as its owner, and exits.
    server::command("migrate", async |owner: OwnerSettings| {
        Ok(database::migrate(&owner.url, SCHEMA, MIGRATIONS).await?)
    })
    .or_else(|| {
        server::command("revoke-all-tokens", async |database: DatabaseSettings| {
            Ok(revoke_all_tokens(&database).await?)
        })
    })
    .unwrap_or_else(|| server::main("user-service", run))
}

/// The process that deletes users, step by step.
pub fn deletion_worker() -> ExitCode {
    dead_letters_command(deletions::QUEUE)
        .unwrap_or_else(|| server::main("deletion-worker", run_deletion_worker))
}

fn notification_worker() -> ExitCode {
    dead_letters_command(notifications::QUEUE)
        .unwrap_or_else(|| server::main("notification-worker", run_notification_worker))
}
