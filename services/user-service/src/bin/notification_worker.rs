//! The process that sends messages to users.

use std::process::ExitCode;

use messaging::{Queue, dead_letters_command};

fn main() -> ExitCode {
    dead_letters_command(Queue::USER_NOTIFICATIONS).unwrap_or_else(|| {
        service_runtime::main("notification-worker", user_service::run_notification_worker)
    })
}
