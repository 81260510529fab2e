//! The HTTP service of user accounts.

use std::process::ExitCode;

fn main() -> ExitCode {
    process::main("user-service", user_service::run)
}
