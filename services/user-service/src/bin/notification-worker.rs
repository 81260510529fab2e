//! The process that sends notifications to users.

use std::process::ExitCode;

use messaging::dead_letters_command;
use user_service::notifications;

fn main() -> ExitCode {
    dead_letters_command(notifications::QUEUE).unwrap_or_else(|| {
        service_runtime::main("notification-worker", user_service::run_notification_worker)
    })
}
