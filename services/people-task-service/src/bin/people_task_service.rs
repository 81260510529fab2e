//! The people-task-service's process.

use std::process::ExitCode;

fn main() -> ExitCode {
    process::main("people-task-service", people_task_service::run)
}
