//! The people-task-service: tasks, decisions and webhooks over HTTP.

use std::process::ExitCode;

fn main() -> ExitCode {
    service_runtime::main("people-task-service", people_task_service::run)
}
