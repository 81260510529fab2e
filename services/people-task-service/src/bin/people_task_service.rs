//! The people-task-service's process.

use std::process::ExitCode;

fn main() -> ExitCode {
    service_runtime::main("people-task-service", people_task_service::run)
}
