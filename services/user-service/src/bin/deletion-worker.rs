//! The process that deletes users, step by step.

use std::process::ExitCode;

use messaging::dead_letters_command;
use user_service::deletions;

fn main() -> ExitCode {
    dead_letters_command(deletions::QUEUE).unwrap_or_else(|| {
        service_runtime::main("deletion-worker", user_service::run_deletion_worker)
    })
}
