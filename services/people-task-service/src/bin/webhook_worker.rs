//! Sends what was decided to the webhooks that were registered.

use std::process::ExitCode;

use messaging::{Queue, dead_letters_command};

fn main() -> ExitCode {
    dead_letters_command(Queue::WEBHOOK_DELIVERIES).unwrap_or_else(|| {
        service_runtime::main("webhook-worker", people_task_service::run_webhook_worker)
    })
}
