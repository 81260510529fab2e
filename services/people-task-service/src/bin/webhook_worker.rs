//! Sends what was decided to the webhooks that were registered.

use std::process::ExitCode;

fn main() -> ExitCode {
    process::main("webhook-worker", people_task_service::run_webhook_worker)
}
