//! The webhook-worker: sends decisions to webhooks.

use std::process::ExitCode;

use messaging::dead_letters_command;
use people_task_service::deliveries;

fn main() -> ExitCode {
    dead_letters_command(deliveries::QUEUE).unwrap_or_else(|| {
        service_runtime::main("webhook-worker", people_task_service::run_webhook_worker)
    })
}
