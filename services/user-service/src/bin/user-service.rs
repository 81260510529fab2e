//! The HTTP service of user accounts.

use std::process::ExitCode;

fn main() -> ExitCode {
    service_runtime::main("user-service", user_service::run)
}
