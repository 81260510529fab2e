//! The process that deletes users, step by step.

use std::process::ExitCode;

use messaging::{Queue, dead_letters_command};

fn main() -> ExitCode {
    dead_letters_command(Queue::USER_DELETIONS).unwrap_or_else(|| {
        service_runtime::main("deletion-worker", user_service::run_deletion_worker)
    })
}
