//! The process that sends messages to users.

use std::process::ExitCode;

fn main() -> ExitCode {
    process::main("notification-worker", user_service::run_notification_worker)
}
