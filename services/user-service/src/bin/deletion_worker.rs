//! The process that deletes users, step by step.

use std::process::ExitCode;

fn main() -> ExitCode {
    process::main("deletion-worker", user_service::run_deletion_worker)
}
